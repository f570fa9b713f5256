"""A rank that is killed or stopped: requests end, new ones are refused, and the pair forms again without a hand."""

import asyncio
import signal
import time
from pathlib import Path

import pytest

from support.engine_client import EngineClient, Reply, build_message, wait_for
from support.rank_processes import EXCHANGE_TIMEOUT_SECONDS, RankPair, rank_processes

pytestmark = pytest.mark.slow

LOST_SECONDS = EXCHANGE_TIMEOUT_SECONDS + 5.0
PROBE = build_message("probe", num_prompt_tokens=200, max_tokens=20)


def slow_steps(_rank: int) -> dict[str, str]:
    return {"HASH_STEP_SECONDS": "0.01"}


async def start_load(client: EngineClient) -> list[tuple[asyncio.Task[Reply], Reply]]:
    """Six requests for four slots, so that some decode and some wait; returns once tokens flow."""
    replies = [Reply(f"load{i}") for i in range(6)]
    messages = [build_message(r.request_id, num_prompt_tokens=150, max_tokens=800) for r in replies]
    tasks = [
        asyncio.create_task(client.generate(message, reply)) for message, reply in zip(messages, replies, strict=True)
    ]
    await wait_for(lambda: sum(bool(reply.tokens) for reply in replies) == 4, 10, "four requests decode")
    return list(zip(tasks, replies, strict=True))


async def bring_back(pair: RankPair, rank: int, number: signal.Signals) -> None:
    if number is signal.SIGSTOP:
        pair.ranks[rank].send(signal.SIGCONT)
    else:
        await asyncio.to_thread(pair.ranks[rank].restart)


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
async def test_a_lost_rank_under_load_ends_every_request_and_the_pair_serves_again(
    tmp_path: Path, rank: int, number: signal.Signals
) -> None:
    with rank_processes(tmp_path, of_rank=slow_steps) as pair:
        pair.start()
        client = EngineClient(pair.address, EXCHANGE_TIMEOUT_SECONDS)
        await client.wait_health("SERVING", 30)
        before = await client.generate(PROBE)
        load = await start_load(client)

        lost_at = time.monotonic()
        pair.ranks[rank].send(number)
        replies = await asyncio.wait_for(asyncio.gather(*(task for task, _ in load)), 30)
        assert [reply.code for reply in replies] == ["UNAVAILABLE"] * 6
        assert max(reply.ended_at for reply in replies) - lost_at < LOST_SECONDS
        assert all(len(reply.tokens) < 800 for reply in replies)
        refused = await client.generate(build_message("new"))
        assert refused.code == "UNAVAILABLE"
        assert await client.health() != "SERVING"

        await bring_back(pair, rank, number)
        await client.wait_health("SERVING", 30)
        assert (await client.generate(PROBE)).tokens == before.tokens
        stats = await client.stats()
        assert (stats.num_running, stats.num_waiting) == (0, 0)
        survivor = pair.ranks[rank if number is signal.SIGSTOP else 1 - rank]
        assert len(survivor.logs("weights_loading")) == 1
        assert len(survivor.logs("group_formed")) >= 2
        await client.close()


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
async def test_a_rank_lost_while_idle_is_noticed_and_the_pair_serves_again(
    tmp_path: Path, rank: int, number: signal.Signals
) -> None:
    with rank_processes(tmp_path) as pair:
        pair.start()
        client = EngineClient(pair.address, EXCHANGE_TIMEOUT_SECONDS)
        await client.wait_health("SERVING", 30)
        before = await client.generate(PROBE)
        pair.ranks[rank].send(number)
        if rank == 1:
            await client.wait_health("NOT_SERVING", LOST_SECONDS)
            refused = await client.generate(build_message("new"))
            assert refused.status is not None
            assert (refused.code, refused.status.reason) == ("UNAVAILABLE", "RANK_LOST")
        else:
            follower = pair.ranks[1]
            await wait_for(lambda: bool(follower.logs("group_left")), LOST_SECONDS, "the follower notices")
        await bring_back(pair, rank, number)
        await asyncio.sleep(0.3)
        await client.wait_health("SERVING", 30)
        assert (await client.generate(PROBE)).tokens == before.tokens
        await client.close()


async def test_both_ranks_killed_one_after_the_other_serve_again(tmp_path: Path) -> None:
    with rank_processes(tmp_path) as pair:
        pair.start()
        client = EngineClient(pair.address, EXCHANGE_TIMEOUT_SECONDS)
        await client.wait_health("SERVING", 30)
        before = await client.generate(PROBE)
        for rank in (1, 0):
            pair.ranks[rank].send(signal.SIGKILL)
            await asyncio.to_thread(pair.ranks[rank].restart)
        await client.wait_health("SERVING", 30)
        assert (await client.generate(PROBE)).tokens == before.tokens
        await client.close()
