"""A rank that is killed or stopped: requests end, new ones are refused, and the pair forms again without a hand.

One pair a transport serves all tests: each leaves it as it found it.
"""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Iterator

import pytest

from support.engine_client import EngineClient, Reply, build_message
from support.rank_processes import EXCHANGE_TIMEOUT_SECONDS, RankPair, RankProcess, rank_processes
from support.waiting import PATIENCE_SECONDS, eventually

pytestmark = pytest.mark.slow

LOST_SECONDS = EXCHANGE_TIMEOUT_SECONDS + 5.0
PROBE = build_message("probe", num_prompt_tokens=200, max_tokens=20)


@pytest.fixture(scope="module", params=["tcp", "gloo"])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RankPair]:
    folder = tmp_path_factory.mktemp("ranks")
    variables = {"HASH_STEP_SECONDS": "0.01", "TWINSPARK_ENGINE_TRANSPORT": request.param}
    with rank_processes(folder, of_rank=lambda _rank: variables) as pair:
        pair.start()
        yield pair


@pytest.fixture
async def client(pair: RankPair) -> AsyncIterator[EngineClient]:
    client = EngineClient(pair.address, EXCHANGE_TIMEOUT_SECONDS)
    await client.wait_health("SERVING")
    yield client
    await client.close()


async def start_load(client: EngineClient) -> list[asyncio.Task[Reply]]:
    """Six requests for four slots, so that some decode and some wait; returns once tokens flow."""
    replies = [Reply(f"load{i}") for i in range(6)]
    messages = [build_message(r.request_id, num_prompt_tokens=150, max_tokens=800) for r in replies]
    tasks = [
        asyncio.create_task(client.generate(message, reply)) for message, reply in zip(messages, replies, strict=True)
    ]
    await eventually(lambda: sum(bool(reply.tokens) for reply in replies) == 4, "four requests decode")
    return tasks


def count_ends(follower: RankProcess) -> int:
    """How often the follower has left a group, whatever it noticed first."""
    return len(follower.logs("group_left")) + len(follower.logs("group_lost"))


async def bring_back(lost: RankProcess, number: signal.Signals) -> None:
    if number is signal.SIGSTOP:
        lost.send(signal.SIGCONT)
    else:
        await asyncio.to_thread(lost.restart)


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
async def test_a_lost_rank_under_load_ends_every_request_and_the_pair_serves_again(
    pair: RankPair, client: EngineClient, rank: int, number: signal.Signals
) -> None:
    before = await client.generate(PROBE)
    survivor = pair.ranks[rank if number is signal.SIGSTOP else 1 - rank]
    num_loads, num_groups = len(survivor.logs("weights_loading")), len(survivor.logs("group_formed"))
    num_ends = count_ends(pair.ranks[1])
    load = await start_load(client)

    lost_at = time.monotonic()
    pair.ranks[rank].send(number)
    replies = await asyncio.wait_for(asyncio.gather(*load), PATIENCE_SECONDS)
    assert [reply.code for reply in replies] == ["UNAVAILABLE"] * 6
    assert max(reply.ended_at for reply in replies) - lost_at < LOST_SECONDS
    assert all(len(reply.tokens) < 800 for reply in replies)
    refused = await client.generate(build_message("new"))
    assert refused.code == "UNAVAILABLE"
    assert await client.health() != "SERVING"
    if rank == 0:
        await eventually(lambda: count_ends(pair.ranks[1]) > num_ends, "the follower notices", LOST_SECONDS)

    await bring_back(pair.ranks[rank], number)
    await client.wait_health("SERVING")
    assert (await client.generate(PROBE)).tokens == before.tokens
    stats = await client.stats()
    assert (stats.num_running, stats.num_waiting) == (0, 0)
    assert len(survivor.logs("weights_loading")) == num_loads, "weights stay loaded"
    assert len(survivor.logs("group_formed")) > num_groups


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
async def test_a_rank_lost_while_idle_is_noticed_and_the_pair_serves_again(
    pair: RankPair, client: EngineClient, rank: int, number: signal.Signals
) -> None:
    before = await client.generate(PROBE)
    num_ends = count_ends(pair.ranks[1])
    pair.ranks[rank].send(number)
    if rank == 1:
        await client.wait_health("NOT_SERVING", LOST_SECONDS)
        refused = await client.generate(build_message("new"))
        assert refused.status is not None
        assert (refused.code, refused.status.reason) == ("UNAVAILABLE", "RANK_LOST")
    else:
        await eventually(lambda: count_ends(pair.ranks[1]) > num_ends, "the follower notices", LOST_SECONDS)
    await bring_back(pair.ranks[rank], number)
    await asyncio.sleep(0.3)
    await client.wait_health("SERVING")
    assert (await client.generate(PROBE)).tokens == before.tokens


async def test_both_ranks_killed_one_after_the_other_serve_again(pair: RankPair, client: EngineClient) -> None:
    before = await client.generate(PROBE)
    for rank in (1, 0):
        pair.ranks[rank].send(signal.SIGKILL)
        await asyncio.to_thread(pair.ranks[rank].restart)
    await client.wait_health("SERVING")
    assert (await client.generate(PROBE)).tokens == before.tokens
