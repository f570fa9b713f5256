"""Remembers the reasoning of replies that called tools, for clients that do not send it back.

Without it the next prompt of a tool loop would render an empty reasoning that the model never wrote, and no stored
prefix would fit any more. In the memory of this process only; each API key has a scope of its own.
"""

import contextlib
import hashlib
import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from twinspark_gateway.prompt.template import Conversation

Message = Mapping[str, Any]


@dataclass(slots=True)
class _Remembered:
    reasoning: str
    keys: set[str]

    @property
    def num_bytes(self) -> int:
        return len(self.reasoning.encode(errors="surrogatepass"))


@dataclass(slots=True)
class ReasoningMemory:
    """The newest replies within both limits; used from the event loop. With max_replies 0 it remembers nothing."""

    max_replies: int
    max_bytes: int
    _replies: OrderedDict[int, _Remembered] = field(default_factory=OrderedDict)
    _by_key: dict[str, int] = field(default_factory=dict)
    _num_bytes: int = 0
    _num_seen: int = 0

    def remember(self, scope: str, messages: Sequence[Message], calls: Sequence[Message], reasoning: str) -> None:
        """Keep the reasoning of a reply to messages that made these calls, each {"id", "function": {...}}."""
        remembered = _Remembered(reasoning, set(_keys(scope, _last_user_text(messages), calls)))
        if not reasoning or not calls or not self.max_replies or remembered.num_bytes > self.max_bytes:
            return
        self._num_seen += 1
        for key in remembered.keys:
            self._forget_key(key)
            self._by_key[key] = self._num_seen
        self._replies[self._num_seen] = remembered
        self._num_bytes += remembered.num_bytes
        while len(self._replies) > self.max_replies or self._num_bytes > self.max_bytes:
            self._drop(next(iter(self._replies)))

    def restore(self, scope: str, conversation: Conversation) -> tuple[Conversation, int]:
        """Give the conversation with the reasoning of its tool calls put back where it has none, and how often."""
        messages, num_restored = list(conversation.messages), 0
        for position, message in enumerate(messages):
            calls = message.get("tool_calls")
            if not calls or "reasoning_content" in message:
                continue
            reasoning = self._find(_keys(scope, _last_user_text(messages[:position]), calls))
            if reasoning is not None:
                messages[position] = {**message, "reasoning_content": reasoning}
                num_restored += 1
        return (replace(conversation, messages=messages) if num_restored else conversation), num_restored

    def _find(self, keys: Iterator[str]) -> str | None:
        number = next((self._by_key[key] for key in keys if key in self._by_key), None)
        if number is None:
            return None
        self._replies.move_to_end(number)
        return self._replies[number].reasoning

    def _forget_key(self, key: str) -> None:
        number = self._by_key.pop(key, None)
        if number is not None:
            keys = self._replies[number].keys
            keys.discard(key)
            if not keys:
                self._drop(number)

    def _drop(self, number: int) -> None:
        remembered = self._replies.pop(number)
        self._num_bytes -= remembered.num_bytes
        for key in remembered.keys:
            del self._by_key[key]


def _keys(scope: str, last_user_text: str, calls: Sequence[Message]) -> Iterator[str]:
    """Names of a reply: the ids of its calls, then what it answered and called, as some clients change ids."""
    for call in calls:
        if call.get("id"):
            yield _digest(scope, call["id"])
    called = [[call["function"]["name"], call["function"]["arguments"]] for call in calls]
    with contextlib.suppress(RecursionError):
        yield _digest(scope, last_user_text, json.dumps(called, sort_keys=True))


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _last_user_text(messages: Sequence[Message]) -> str:
    return next((str(message["content"]) for message in reversed(messages) if message["role"] == "user"), "")
