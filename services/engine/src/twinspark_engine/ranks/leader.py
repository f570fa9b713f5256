"""Leader: the group of several ranks as rank 0 sees it. Forms it, sends plans, notices losses.

Order of an epoch: store, Handshake with every rank, weights, Follow, the ranks meet in the store, the process group
forms, every rank says Ready.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog

from twinspark.engine.v1 import rank_pb2 as pb
from twinspark_engine.errors import RanksDifferError, StaleEpochError
from twinspark_engine.memory import MemoryAccount
from twinspark_engine.ranks.convert import memory_from_proto, plan_to_proto, values_from_proto
from twinspark_engine.ranks.handshake import AgreedValues, find_differences, log_differences
from twinspark_engine.ranks.link import FollowerLink
from twinspark_engine.ranks.pair_transport import PairTransport
from twinspark_engine.ranks.transport import TransportError
from twinspark_engine.scheduler.plan import StepPlan

log = structlog.get_logger()
T = TypeVar("T")

ARRIVAL_POLL_SECONDS = 0.05
"""Pause between two looks into the store while followers load weights."""


@dataclass(frozen=True, slots=True)
class LeaderSettings:
    """What the leader is given."""

    group_host: str
    """Address of this rank's store."""
    timeout_seconds: float
    """After which a silent rank is lost."""


class Leader:
    """A Group. Constructed in the event loop's thread, used from the loop's thread; links live in the event loop."""

    def __init__(
        self,
        settings: LeaderSettings,
        values: AgreedValues,
        transport: PairTransport,
        links: Sequence[FollowerLink],
        event_loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._settings = settings
        self._values = values
        self._transport = transport
        self._links = links
        self._event_loop = event_loop
        self._epoch = 0

    def form(self, load: Callable[[], None]) -> int:
        """See Group.form."""
        # Larger than every epoch of an earlier rank 0 that a follower may still remember.
        self._epoch = max(self._epoch + 1, int(time.time() * 1000))
        port = self._transport.host_store()
        self._await(self._handshake(self._epoch, port))
        load()
        self._await(self._open_streams(self._epoch))
        while not self._transport.all_announced(self._epoch):
            self._check_links()
            time.sleep(ARRIVAL_POLL_SECONDS)
        self._transport.form(self._epoch)
        self._await(self._wait_ready(self._epoch))
        return self._epoch

    def publish(self, plan: StepPlan) -> None:
        """See Group.publish."""
        request = pb.FollowRequest(plan=plan_to_proto(plan))
        self._event_loop.call_soon_threadsafe(self._post, request)

    def check(self) -> None:
        """See Group.check."""
        self._check_links()
        self._transport.check()

    def collect_memory(self) -> list[MemoryAccount]:
        """See Group.collect_memory."""
        return self._await(self._next_memories())

    def leave(self, reason: str) -> None:
        """See Group.leave."""
        self._transport.leave(reason)
        self._await(self._close_streams())

    def finish(self) -> None:
        """See Group.finish."""
        self._await(self._finish_streams())
        self._transport.leave("the engine stops")

    def _check_links(self) -> None:
        for link in self._links:
            if link.lost:
                raise TransportError(f"rank {link.rank}: {link.lost}")

    def _await(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._event_loop).result()

    def _post(self, request: pb.FollowRequest) -> None:
        for link in self._links:
            link.post(request)

    async def _handshake(self, epoch: int, store_port: int) -> None:
        differing: list[str] = []
        for link in self._links:
            request = pb.HandshakeRequest(
                epoch=epoch,
                rank=link.rank,
                world_size=len(self._links) + 1,
                settings=self._values.settings,
                hashes=self._values.hashes,
                store_host=self._settings.group_host,
                store_port=store_port,
            )
            try:
                response = await link.handshake(request, self._settings.timeout_seconds)
            except StaleEpochError as error:
                self._epoch = max(self._epoch, int(error.metadata["newest_epoch"]))
                raise TransportError(f"rank {link.rank} knows a newer epoch") from error
            differences = find_differences(self._values, AgreedValues(*values_from_proto(response)))
            log_differences(differences, link.rank)
            differing += [difference.name for difference in differences]
        if differing:
            raise RanksDifferError(sorted(set(differing)))

    async def _open_streams(self, epoch: int) -> None:
        for link in self._links:
            await link.open(epoch)

    async def _wait_ready(self, epoch: int) -> None:
        for link in self._links:
            response = await link.next_response(self._settings.timeout_seconds)
            if response.ready.epoch != epoch:
                raise TransportError(f"rank {link.rank} is not ready for epoch {epoch}")

    async def _next_memories(self) -> list[MemoryAccount]:
        timeout = self._settings.timeout_seconds
        return [memory_from_proto((await link.next_response(timeout)).memory) for link in self._links]

    async def _close_streams(self) -> None:
        for link in self._links:
            await link.close()

    async def _finish_streams(self) -> None:
        for link in self._links:
            await link.finish(self._settings.timeout_seconds)
