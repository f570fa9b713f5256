"""Conversation: one training document before rendering; what the generator makes and what rows are packed from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages in the form of the chat API, the last one by the assistant.

    Assistant messages hold `reasoning_content` (may be empty) beside `content`, and `tool_calls` with arguments as
    mappings; one with `is_context` is there to be read, not learned. The rendered document ends with the token that
    ends the last reply.
    """

    kind: str
    messages: tuple[Mapping[str, Any], ...]
    tools: tuple[Mapping[str, Any], ...] = ()
    reasoning_effort: str | None = None  # low, high; None: the template's default
    enable_thinking: bool = True
    learns_prompt: bool = True  # False: what others than the assistant say (filler, codes) has no loss
