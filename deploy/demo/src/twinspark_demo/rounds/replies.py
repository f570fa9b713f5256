"""Runs the conversations of the evaluation's prompts, turn by turn."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from twinspark_demo.drafts.template import load_template, render
from twinspark_demo.evaluation.drawing import draw_prompts, kinds
from twinspark_demo.evaluation.prompt import Prompt
from twinspark_demo.rounds.engine import Said, ServedTarget

END_OF_THINKING = "</think>"


def askable_kinds() -> list[str]:
    """Kinds whose prompts can be asked here, in the order of the table."""
    return [kind for kind in kinds() if all(map(_can_ask, draw_prompts(kind, 1)))]


def _can_ask(prompt: Prompt) -> bool:
    """Constraints and the results of calls are a server's; prompts with either are other kinds once more."""
    return not (prompt.fields or prompt.tool_steps)


class Conversations:
    """Asks the target as a client would; a folder's tokenizer and chat template between them."""

    def __init__(self, folder: Path, target: ServedTarget) -> None:
        """Raises OSError where the folder has no template."""
        self._template = load_template(folder)
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._target = target

    def tokens(self, text: str) -> list[int]:
        """Of a text, without those that a prompt begins with."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def replies(self, prompt: Prompt) -> Iterator[Said]:
        """The reply to every turn of the prompt; each is to be used before the next.

        ValueError for a prompt that is none of askable_kinds.
        """
        if not _can_ask(prompt):
            raise ValueError(f"{prompt.kind} is asked of a server: one of {', '.join(askable_kinds())} is needed")
        messages: list[Any] = list(prompt.messages)
        for text in (*prompt.later_turns, None):
            rendered = render(self._template, messages, prompt.tools)
            said = self._target.reply(self.tokens(rendered))
            yield said
            if text is None:
                return
            whole = self._tokenizer.decode(list(said.tokens[:-1]), skip_special_tokens=False)
            reasoning, _, content = whole.partition(END_OF_THINKING)
            sent = {"reasoning_content": reasoning} if prompt.sends_reasoning else {}
            messages += [{"role": "assistant", "content": content, **sent}, {"role": "user", "content": text}]
