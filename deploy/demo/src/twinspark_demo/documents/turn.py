"""Turn and Setting: a request with its reply, and what surrounds the turns of a conversation."""

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

from twinspark_demo.conversation import Conversation

SYSTEM_SHARE, EFFORT_SHARE, SILENT_SHARE = 0.1, 0.1, 0.1
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

    def messages(self) -> tuple[dict[str, str], dict[str, str]]:
        """The two messages in the form of the chat API."""
        reply = {"role": "assistant", "reasoning_content": self.reasoning, "content": self.answer}
        return {"role": "user", "content": self.request}, reply


@dataclass(frozen=True, slots=True)
class Setting:
    """How a conversation is held; nothing in it changes an answer, except that without thinking there is none."""

    system: str | None = None
    reasoning_effort: str | None = None
    enable_thinking: bool = True

    @classmethod
    def draw(cls, rng: Random) -> "Setting":
        """A system message, low effort, high effort, no thinking: a tenth each."""
        system = _SYSTEMS[int(rng.random() * len(_SYSTEMS))] if rng.random() < SYSTEM_SHARE else None
        draw = rng.random()
        if draw < SILENT_SHARE:
            return cls(system, None, False)
        if draw < SILENT_SHARE + 2 * EFFORT_SHARE:
            return cls(system, "low" if draw < SILENT_SHARE + EFFORT_SHARE else "high", True)
        return cls(system)

    def conversation(self, kind: str, turns: Iterable[Turn], learns_prompt: bool = True) -> Conversation:
        """The conversation of these turns."""
        messages = [{"role": "system", "content": self.system}] if self.system is not None else []
        for turn in turns:
            messages.extend(turn.messages())
        return Conversation(
            kind,
            tuple(messages),
            reasoning_effort=self.reasoning_effort,
            enable_thinking=self.enable_thinking,
            learns_prompt=learns_prompt,
        )
