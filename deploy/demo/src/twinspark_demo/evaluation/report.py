"""The report of an evaluation: a table for people, JSON with every wrong answer, and whether it is good enough."""

import datetime
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from twinspark_demo.evaluation.scoring import CONCURRENCY, GREEDY, SAMPLED, KindScore, Outcome
from twinspark_demo.evaluation.server import MAX_TOKENS
from twinspark_tools.bench.machine import describe_machine, describe_versions, find_commit

LEAST_SHARE = 0.95
"""Right answers that each kind needs, greedily and sampled alike."""
_HEADINGS = ("kind", "prompts", "greedy", "sampled", "held out", "mean output", "seconds")
_SHOWN_FAILURES = 10
_SHOWN_CHARACTERS = 160


def is_good_enough(scores: Sequence[KindScore]) -> bool:
    """Whether no request failed and every kind reaches LEAST_SHARE in each mode in which it was asked."""
    shares = [score.share(mode) for score in scores for mode in (GREEDY, SAMPLED)]
    failed = any(outcome.answer.is_failed_request for score in scores for outcome in score.outcomes)
    return not failed and all(share is None or share >= LEAST_SHARE for share in shares)


def format_table(scores: Sequence[KindScore]) -> str:
    """One line a kind; shares in percent, output in tokens."""
    rows = [_HEADINGS, *map(_row, scores)]
    lines = []
    for first, *others in rows:
        lines.append(f"{first:<14}" + "".join(f"{cell:>13}" for cell in others))
    return "\n".join(lines)


def format_failures(scores: Sequence[KindScore]) -> str:
    """Failed requests first, then wrong answers, a few of each kind; the rest is in the JSON."""
    lines = []
    for score in scores:
        ordered = sorted(score.wrong, key=lambda outcome: not outcome.answer.is_failed_request)
        lines += [_failure_line(outcome) for outcome in ordered[:_SHOWN_FAILURES]]
        if len(ordered) > _SHOWN_FAILURES:
            lines.append(f"{score.kind}: {len(ordered) - _SHOWN_FAILURES} more")
    return "\n".join(lines)


def prepare_file(path: Path) -> None:
    """Makes the folder of a file that is to be written when all is measured; ValueError if it could not be written.

    No file is left behind, and one that is there keeps its content.
    """
    try:
        if path.is_dir():
            raise ValueError(f"--json {path} is a folder: name a file in it")
        path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not path.exists()
        path.open("a", encoding="utf-8").close()
        if is_new:
            path.unlink()
    except OSError as error:
        raise ValueError(f"--json {path} cannot be written: {error}") from error


def build_report(scores: Sequence[KindScore], settings: Mapping[str, Any], served: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that the table says and what it rests on, as JSON values."""
    return {
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": find_commit(),
        "machine": describe_machine() | {"name": platform.machine()},
        "versions": describe_versions(),
        "served": served,
        "settings": {**settings, "concurrency": CONCURRENCY, "max_tokens": MAX_TOKENS, "least_share": LEAST_SHARE},
        "good_enough": is_good_enough(scores),
        "kinds": [_summary(score) for score in scores],
        "failures": [_failure(outcome) for score in scores for outcome in score.wrong],
    }


def _row(score: KindScore) -> tuple[str, ...]:
    shares = (score.share(GREEDY), score.share(SAMPLED), score.held_out_share)
    return (
        score.kind,
        str(_num_prompts(score)),
        *("-" if share is None else f"{100 * share:.1f}" for share in shares),
        f"{score.mean_output_tokens:.1f}",
        f"{score.seconds:.1f}",
    )


def _num_prompts(score: KindScore) -> int:
    return sum(outcome.mode == GREEDY for outcome in score.outcomes)


def _summary(score: KindScore) -> dict[str, Any]:
    prompt_tokens = [outcome.answer.prompt_tokens for outcome in score.outcomes if outcome.answer.prompt_tokens]
    return {
        "kind": score.kind,
        "prompts": _num_prompts(score),
        "greedy": score.share(GREEDY),
        "sampled": score.share(SAMPLED),
        "held_out": score.held_out_share,
        "held_out_prompts": sum(outcome.prompt.held_out for outcome in score.outcomes if outcome.mode == GREEDY),
        "failed_requests": sum(outcome.answer.is_failed_request for outcome in score.outcomes),
        "mean_output_tokens": score.mean_output_tokens,
        "mean_prompt_tokens": sum(prompt_tokens) / max(1, len(prompt_tokens)),
        "seconds": score.seconds,
    }


def _failure(outcome: Outcome) -> dict[str, Any]:
    prompt, answer = outcome.prompt, outcome.answer
    return {
        "kind": prompt.kind,
        "mode": outcome.mode,
        "held_out": prompt.held_out,
        "error": answer.error,
        "messages": prompt.messages,
        "later_turns": prompt.later_turns,
        "sends_reasoning": prompt.sends_reasoning,
        "tools": prompt.tools,
        "expected": prompt.expected_as_json(),
        "reasoning": answer.reasoning,
        "reply": answer.text,
    }


def _failure_line(outcome: Outcome) -> str:
    prompt, answer = outcome.prompt, outcome.answer
    asked = (*prompt.later_turns, prompt.messages[0]["content"])[-1 if not prompt.later_turns else -2]
    said = answer.error or f"said {answer.text!r}"
    line = f"{prompt.kind}, {outcome.mode}: {said[:_SHOWN_CHARACTERS]}"
    return f"{line}; asked {asked[-_SHOWN_CHARACTERS:]!r}"
