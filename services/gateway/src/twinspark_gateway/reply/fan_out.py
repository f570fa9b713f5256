"""Runs the choices of a reply side by side and merges their messages into one stream."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, suppress
from types import TracebackType
from typing import Self

from twinspark_gateway.clients.engine import Generator
from twinspark_gateway.reply.answer_check import AnswerCheck
from twinspark_gateway.reply.choice import Choice, Ended, Message


class FanOut:
    """The running choices of one request, as an asynchronous context manager: leaving it cancels what still runs.

    At most num_parallel run at once, so that one request with many prompts does not fill the engine's queue.
    """

    def __init__(
        self, engine: Generator, choices: Sequence[Choice], num_parallel: int, check: AnswerCheck | None = None
    ) -> None:
        self._engine = engine
        self._choices = choices
        self._check = check
        self._num_parallel = max(1, min(num_parallel, len(choices)))
        self._permits = asyncio.Semaphore(self._num_parallel)
        self._messages: asyncio.Queue[Message | None] = asyncio.Queue()
        self._unheard = set(range(self._num_parallel))
        self._is_settled = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(self._run(i, choice)) for i, choice in enumerate(self._choices)]
        for task in self._tasks:
            task.add_done_callback(self._note_end)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def wait_for_admission(self, timeout_seconds: float) -> None:
        """Wait until the engine has spoken about the choices that run first, or the time is up.

        Raises the error of a choice that was refused, while it can still be a plain HTTP error.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_seconds):
                await self._is_settled.wait()
        self._raise_failure()

    async def messages(self) -> AsyncIterator[Message]:
        """Give the messages of all choices as they come, until each has ended. Raises a choice's error at once."""
        num_open = len(self._choices)
        while num_open:
            message = await self._messages.get()
            if message is None:
                self._raise_failure()
                continue
            num_open -= isinstance(message, Ended)
            yield message

    async def _run(self, position: int, choice: Choice) -> None:
        async with self._permits, aclosing(choice.run(self._engine)) as messages:
            async for message in messages:
                self._messages.put_nowait(message if self._check is None else await self._check.look(message))
                self._hear(position)

    def _hear(self, position: int) -> None:
        self._unheard.discard(position)
        if not self._unheard:
            self._is_settled.set()

    def _note_end(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._is_settled.set()
            # Wakes the reader, which then finds the error.
            self._messages.put_nowait(None)

    def _raise_failure(self) -> None:
        for task in self._tasks:
            if task.done() and not task.cancelled():
                task.result()
