"""The exchange over TCP and over gloo: ranks as threads of this process, each with its own transport."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import TypeVar

import pytest
import torch

from support.waiting import PATIENCE_SECONDS, wait_until
from twinspark_engine.ranks.exchange_buffers import ExchangeBuffers
from twinspark_engine.ranks.gloo_group import form_gloo_group
from twinspark_engine.ranks.pair_group import FormGroup
from twinspark_engine.ranks.pair_transport import PairTransport
from twinspark_engine.ranks.store import host_store, join_store
from twinspark_engine.ranks.tcp_group import EAGER_BYTES, form_tcp_group
from twinspark_engine.ranks.transport import TransportError, sum_in_rank_order

PATIENT = timedelta(seconds=PATIENCE_SECONDS)
BRIEF = timedelta(seconds=2)
"""For tests in which a peer is silent: it has to be over soon, and the group has to form within it."""
Ranks = list[PairTransport]
T = TypeVar("T")


def form(ranks: Ranks, epoch: int) -> None:
    port = ranks[0].host_store()

    def join(rank: PairTransport) -> None:
        rank.join_store("127.0.0.1", port)
        rank.announce(epoch)
        rank.form(epoch)

    def lead() -> None:
        wait_until(lambda: ranks[0].all_announced(epoch), "every rank has announced itself")
        ranks[0].form(epoch)

    joins: list[Callable[[], None]] = [partial(join, rank) for rank in ranks[1:]]
    run_all([lead, *joins])


def run_all(works: Sequence[Callable[[], T]]) -> list[T]:
    with ThreadPoolExecutor(len(works)) as pool:
        return [future.result(PATIENCE_SECONDS) for future in [pool.submit(work) for work in works]]


def gather_all(ranks: Ranks, parts: list[torch.Tensor]) -> list[torch.Tensor]:
    """Each rank's result of one gather, in its own thread."""

    def gather(rank: PairTransport) -> torch.Tensor:
        return rank.gather(parts[rank.rank]).clone()

    return run_all([partial(gather, rank) for rank in ranks])


@contextmanager
def formed(form_group: FormGroup, count: int, timeout: timedelta) -> Iterator[Ranks]:
    ranks = [PairTransport(rank, count, form_group, bind_host="127.0.0.1", timeout=timeout) for rank in range(count)]
    form(ranks, 1)
    yield ranks
    for rank in ranks:
        rank.leave("test")


GROUPS = [(form, count) for form in (form_tcp_group, form_gloo_group) for count in (2, 3)]


@pytest.fixture(params=GROUPS)
def ranks(request: pytest.FixtureRequest) -> Iterator[Ranks]:
    form_group, count = request.param
    with formed(form_group, count, PATIENT) as ranks:
        yield ranks


@pytest.fixture(params=GROUPS)
def brief_ranks(request: pytest.FixtureRequest) -> Iterator[Ranks]:
    form_group, count = request.param
    with formed(form_group, count, BRIEF) as ranks:
        yield ranks


@pytest.mark.parametrize("shape", [(1,), (0, 5), (3, 5), (257, 64), (EAGER_BYTES // 4,), (4096, 1024)])
def test_gather_returns_every_part_in_rank_order_on_every_rank(ranks: Ranks, shape: tuple[int, ...]) -> None:
    parts = [torch.full(shape, float(10 + rank.rank)) for rank in ranks]
    for _ in range(3):
        results = gather_all(ranks, parts)
        assert all(torch.equal(result, torch.stack(parts)) for result in results)


def test_a_strided_part_is_sent_as_what_it_shows(ranks: Ranks) -> None:
    parts = [torch.arange(12.0).reshape(3, 4).t() + rank.rank for rank in ranks]
    results = gather_all(ranks, parts)
    assert torch.equal(sum_in_rank_order(results[0]), torch.stack(parts).sum(dim=0))


def test_buffers_keep_their_addresses(ranks: Ranks) -> None:
    def addresses(rank: PairTransport) -> list[int]:
        return [rank.gather(torch.ones(4, 8)).data_ptr() for _ in range(5)]

    for pointers in run_all([partial(addresses, rank) for rank in ranks]):
        assert len(set(pointers)) == 1


def test_a_silent_peer_poisons_the_exchange_and_no_old_data_is_returned(brief_ranks: Ranks) -> None:
    first = brief_ranks[0]
    gather_all(brief_ranks, [torch.ones(4)] * len(brief_ranks))
    started = time.monotonic()
    with pytest.raises(TransportError):
        first.gather(torch.full((4,), 7.0))
    assert time.monotonic() - started > BRIEF.total_seconds() * 0.8
    with pytest.raises(TransportError):
        first.check()
    started = time.monotonic()
    with pytest.raises(TransportError):
        first.gather(torch.ones(4))
    assert time.monotonic() - started < BRIEF.total_seconds() * 0.8, "a poisoned group refuses at once"


def test_a_peer_that_leaves_is_noticed_before_the_timeout(ranks: Ranks) -> None:

    def leave() -> None:
        for rank in ranks[1:]:
            rank.leave("gone")

    leaver = threading.Timer(0.1, leave)
    leaver.start()
    with pytest.raises(TransportError):
        ranks[0].gather(torch.ones(4))
    leaver.join()


def test_the_same_transports_form_again_after_a_failure(brief_ranks: Ranks) -> None:
    with pytest.raises(TransportError):
        brief_ranks[0].gather(torch.ones(4))
    form(brief_ranks, 2)
    parts = [torch.full((4,), float(rank.rank)) for rank in brief_ranks]
    results = gather_all(brief_ranks, parts)
    assert torch.equal(results[0], torch.stack(parts))


def test_a_transport_without_a_group_refuses() -> None:
    transport = PairTransport(0, 2, form_tcp_group, bind_host="127.0.0.1", timeout=PATIENT)
    for call in (transport.check, lambda: transport.gather(torch.ones(1)), lambda: transport.form(1)):
        with pytest.raises(TransportError):
            call()


def test_a_stranger_on_the_port_is_turned_away() -> None:
    hosted = host_store("127.0.0.1", PATIENT)
    # One connection a caller, as in life: on one of the store's connections a get that waits holds up every set.
    joined, spied = (join_store("127.0.0.1", hosted.port, PATIENT) for _ in range(2))
    ranks = [
        partial(form_tcp_group, store, "group", rank, 2, "127.0.0.1", PATIENT)
        for rank, store in enumerate((hosted, joined))
    ]

    def call_as_stranger() -> None:
        address = json.loads(spied.get("group/address/0"))
        with socket.create_connection((address["host"], address["port"])) as link:
            link.sendall(bytes(64))

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(ranks[0])
        call_as_stranger()
        groups = [pool.submit(ranks[1]).result(PATIENCE_SECONDS), first.result(PATIENCE_SECONDS)]
        buffers = [ExchangeBuffers(2).get(torch.empty(3)) for _ in groups]
        for rank, buffer in zip((1, 0), buffers, strict=True):
            buffer.parts[rank].fill_(float(rank))
        list(pool.map(lambda group, buffer: group.exchange(buffer), groups, buffers))
    assert all(buffer.gathered.tolist() == [[0.0] * 3, [1.0] * 3] for buffer in buffers)
    for group in groups:
        group.close()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64, torch.int64])
def test_any_dtype_travels(ranks: Ranks, dtype: torch.dtype) -> None:
    parts = [torch.full((3, 2), rank.rank + 1, dtype=dtype) for rank in ranks]
    assert torch.equal(gather_all(ranks, parts)[0], torch.stack(parts))
