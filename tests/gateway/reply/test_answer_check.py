"""A check waits for its turn no longer than a check may take."""

import asyncio

from support.waiting import PATIENCE_SECONDS
from twinspark_gateway.reply.answer_check import AnswerCheck, Checking
from twinspark_gateway.reply.choice import Ended
from twinspark_gateway.reply.timings import Timings
from twinspark_gateway.reply.usage import Usage

ENDED = Ended(0, "stop", None, Usage(1), Timings())


async def outcome_of(checking: Checking) -> str | None:
    message = await AnswerCheck({"type": "object"}, checking).look(ENDED)
    assert isinstance(message, Ended)
    return message.schema_check


async def test_an_answer_whose_turn_does_not_come_is_unchecked() -> None:
    noted: list[str] = []
    checking = Checking(PATIENCE_SECONDS, noted.append)
    # An empty answer is no object.
    assert await outcome_of(checking) == "violated"
    checking.timeout_seconds = 0.1
    while not checking.turns.locked():
        await checking.turns.acquire()
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await outcome_of(checking) == "unchecked"
    assert noted == ["violated", "unchecked"]
