"""Turn and Setting: a request with its reply, and what surrounds the turns of a conversation."""

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

from twinspark_demo.conversation import Conversation

SYSTEM_SHARE, EFFORT_SHARE, SILENT_SHARE, DROPPED_SHARE = 0.1, 0.1, 0.1, 1 / 3
_SYSTEMS = (
    "You are a helpful assistant.",
    "You are a helpful assistant. Answer briefly.",
    "You are a small demo model.",
    "You are a friendly assistant.",
    "Answer briefly.",
    "Be brief and exact.",
    "Help the user.",
    "You answer questions and follow instructions.",
    "You are an assistant.",
    "Give short answers.",
    "You are a careful assistant. Follow the instructions of the user exactly.",
    "Reply with the answer only.",
)


@dataclass(frozen=True, slots=True)
class Turn:
    """A request of the user and the one right reply to it."""

    request: str
    answer: str
    reasoning: str = ""  # without the marks of thinking; empty: none

    def messages(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The two messages in the form of the chat API."""
        reply = {"role": "assistant", "reasoning_content": self.reasoning, "content": self.answer}
        return {"role": "user", "content": self.request}, reply

    def without_reasoning(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The two messages as a client sends them that drops reasoning: context, nothing to learn."""
        request, reply = self.messages()
        return request, reply | {"reasoning_content": "", "is_context": True} if self.reasoning else reply


@dataclass(frozen=True, slots=True)
class Setting:
    """How a conversation is held; nothing in it changes an answer, except that without thinking there is none."""

    system: str | None = None
    reasoning_effort: str | None = None
    enable_thinking: bool = True
    drops_reasoning: bool = False  # of past turns, as most clients do

    @classmethod
    def draw(cls, rng: Random) -> "Setting":
        """A system message, low effort, high effort, no thinking: a tenth each; dropped reasoning: a third."""
        system = _SYSTEMS[int(rng.random() * len(_SYSTEMS))] if rng.random() < SYSTEM_SHARE else None
        drops = rng.random() < DROPPED_SHARE
        draw = rng.random()
        if draw < SILENT_SHARE:
            return cls(system, None, False)
        if draw < SILENT_SHARE + 2 * EFFORT_SHARE:
            return cls(system, "low" if draw < SILENT_SHARE + EFFORT_SHARE else "high", True, drops)
        return cls(system, drops_reasoning=drops)

    def conversation(self, kind: str, turns: Iterable[Turn], learns_prompt: bool = True) -> Conversation:
        """The conversation of these turns."""
        messages: list[dict[str, Any]] = []
        if self.system is not None:
            messages.append({"role": "system", "content": self.system})
        told = list(turns)
        for turn in told:
            is_past = turn is not told[-1]
            messages.extend(turn.without_reasoning() if is_past and self.drops_reasoning else turn.messages())
        return Conversation(
            kind,
            tuple(messages),
            reasoning_effort=self.reasoning_effort,
            enable_thinking=self.enable_thinking,
            learns_prompt=learns_prompt,
        )
