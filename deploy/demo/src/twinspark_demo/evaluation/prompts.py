"""`python -m twinspark_demo.evaluation.prompts`: writes prompts with their right replies, for checks without a server.

One JSON object a line: kind, messages, later_turns, sends_reasoning, tools, expected, held_out and reply; reply holds
content and tool_calls where exactly one reply is right, else it is null and `expected` says what the reply must have.
"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from twinspark_demo.evaluation.drawing import COUNT, SEED, draw_prompts, expand_kinds
from twinspark_demo.evaluation.filler import TOKENS_PER_SENTENCE
from twinspark_demo.evaluation.prompt import Prompt


def main(
    out: Annotated[Path, typer.Option(help="File to write.")],
    count: Annotated[int, typer.Option(min=1, help="Prompts of each kind.")] = COUNT,
    kinds: Annotated[str, typer.Option(help="Kinds, separated by commas; empty: all.")] = "",
    seed: Annotated[int, typer.Option(help="Another seed, other prompts.")] = SEED,
    tokens_per_sentence: Annotated[float, typer.Option(help="Of filler, on average.")] = TOKENS_PER_SENTENCE,
) -> None:
    """Write prompts as JSON lines."""
    drawn = [prompt for kind in expand_kinds(kinds) for prompt in draw_prompts(kind, count, seed, tokens_per_sentence)]
    lines = [json.dumps(as_line(prompt), ensure_ascii=False) for prompt in drawn]
    out.write_text("\n".join(lines) + "\n", encoding="utf-8")


def as_line(prompt: Prompt) -> dict[str, Any]:
    """A prompt as JSON values."""
    return {
        "kind": prompt.kind,
        "messages": prompt.messages,
        "later_turns": prompt.later_turns,
        "sends_reasoning": prompt.sends_reasoning,
        "tools": prompt.tools,
        "tool_steps": [asdict(step) for step in prompt.tool_steps],
        "fields": prompt.fields,
        "expected": prompt.expected_as_json(),
        "held_out": prompt.held_out,
        "reply": prompt.reply,
    }


if __name__ == "__main__":
    typer.run(main)
