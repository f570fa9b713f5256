"""Checks finished answers against what masks do not enforce of their schema.

In a process of its own for each answer, killed at a limit: schemas are hostile at will, and a check that takes for ever
or too much memory must cost nobody else anything.
"""

import asyncio
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from twinspark_gateway.reply.choice import Delta, Ended, Message

VALID, VIOLATED, UNCHECKED = "valid", "violated", "unchecked"
_AT_ONCE = 2
PROGRAM = "twinspark_gateway.reply.check_program"


class Checking:
    """What all checks of a gateway share."""

    def __init__(self, timeout_seconds: float, note: Callable[[str], None]) -> None:
        # Of one check, the wait for its turn included: hostile schemas delay no other reply longer.
        self.timeout_seconds = timeout_seconds
        # Told of every outcome.
        self.note = note
        # Few at a time, as others want the processor too.
        self.turns = asyncio.Semaphore(_AT_ONCE)


class AnswerCheck:
    """The answers of one request's choices. Used from the event loop."""

    def __init__(self, schema: Mapping[str, Any], checking: Checking) -> None:
        self._schema = schema
        self._checking = checking
        self._texts: defaultdict[int, str] = defaultdict(str)

    async def look(self, message: Message) -> Message:
        """Give the message; the last one of an answer that its end token ended says how the check went."""
        if isinstance(message, Delta):
            self._texts[message.index] += message.content
        if not isinstance(message, Ended) or message.finish_reason != "stop" or isinstance(message.stop_reason, str):
            return message
        outcome = await self._check(self._texts.pop(message.index, ""))
        self._checking.note(outcome)
        return replace(message, schema_check=outcome)

    async def _check(self, text: str) -> str:
        question = json.dumps({"schema": self._schema, "text": text}).encode()
        try:
            async with asyncio.timeout(self._checking.timeout_seconds), self._checking.turns:
                answer = await _ask(question)
        except TimeoutError:
            return UNCHECKED
        return {b"valid": VALID, b"violated": VIOLATED}.get(answer, UNCHECKED)


async def _ask(question: bytes) -> bytes:
    # Without the environment, which holds keys.
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", PROGRAM, env={}, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    try:
        answer, _ = await process.communicate(question)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return answer
