"""Two real processes, with a model whose tokens depend on everything before them."""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psutil
import pytest

from support.engine_client import EngineClient, Reply, build_message
from support.rank_processes import RankPair, rank_processes
from support.waiting import eventually, wait_until
from twinspark.engine.v1 import engine_pb2 as pb


@pytest.fixture(scope="module", params=["tcp", "gloo"])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RankPair]:
    """One a transport; serves all tests but the one that ends it."""
    variables = {"TWINSPARK_ENGINE_TRANSPORT": request.param}
    with rank_processes(tmp_path_factory.mktemp("ranks"), of_rank=lambda _rank: variables) as ranks:
        ranks.start()
        yield ranks


@pytest.fixture
async def client(pair: RankPair) -> AsyncIterator[EngineClient]:
    client = EngineClient(pair.address)
    await client.wait_health("SERVING")
    yield client
    await client.close()


async def test_requests_together_get_the_tokens_that_they_get_alone(client: EngineClient) -> None:
    messages = [build_message(f"r{i}", num_prompt_tokens=1 + 37 * i, max_tokens=5 + i) for i in range(8)]
    alone = [(await client.generate(message)).tokens for message in messages]
    together = await asyncio.gather(*(client.generate(message) for message in messages))
    assert [reply.tokens for reply in together] == alone
    assert [len(tokens) for tokens in alone] == [5 + i for i in range(8)]


async def test_the_stream_begins_with_admitted_and_ends_with_finished(client: EngineClient) -> None:
    reply = await client.generate(build_message("a", max_tokens=3))
    assert [r.WhichOneof("event") for r in reply.responses] == ["admitted", "step", "step", "step", "finished"]
    assert reply.finished is not None
    assert reply.finished.reason == pb.FINISH_REASON_LENGTH
    assert (reply.finished.usage.prompt_tokens, reply.finished.usage.output_tokens) == (5, 3)


async def test_a_cancelled_call_frees_its_slot_and_leaves_the_others_alone(client: EngineClient) -> None:
    before = await client.stats()
    alone = (await client.generate(build_message("kept", max_tokens=300))).tokens
    kept = asyncio.create_task(client.generate(build_message("kept", max_tokens=300)))
    call = client.stub.Generate(build_message("left", max_tokens=1000))
    for _ in range(5):
        await call.read()
    call.cancel()
    assert (await kept).tokens == alone
    stats = await client.stats()
    assert stats.num_running == 0
    assert stats.requests_cancelled_total - before.requests_cancelled_total == 1
    assert stats.requests_total - before.requests_total == 3
    assert (await client.generate(build_message("left", max_tokens=2))).code == "OK"


async def test_memory_is_reported_for_both_ranks(client: EngineClient) -> None:
    answer = await client.stub.GetMemory(pb.GetMemoryRequest())
    assert [(r.rank, r.parts["weights"]) for r in answer.ranks] == [(0, 1000), (1, 1001)]
    assert all(10_000_000 < r.resident_bytes < r.total_bytes for r in answer.ranks)


async def test_an_idle_pair_uses_no_cpu(client: EngineClient, pair: RankPair) -> None:
    await client.generate(build_message("a"))
    processes = [psutil.Process(rank.pid) for rank in pair.ranks]
    before = [sum(p.cpu_times()[:2]) for p in processes]
    await asyncio.sleep(2)
    used = [sum(p.cpu_times()[:2]) - b for p, b in zip(processes, before, strict=True)]
    assert max(used) < 0.1


async def test_sigterm_lets_running_requests_finish_and_ends_both_ranks_with_0(tmp_path: Path) -> None:
    variables = {"HASH_STEP_SECONDS": "0.005", "TWINSPARK_ENGINE_DRAIN_SECONDS": "60"}
    with rank_processes(tmp_path, of_rank=lambda _rank: variables) as pair:
        pair.start()
        client = EngineClient(pair.address)
        await client.wait_health("SERVING")
        await end_while_a_request_runs(pair, client)
        await client.close()


async def end_while_a_request_runs(pair: RankPair, client: EngineClient) -> None:
    reply = Reply("a")
    running = asyncio.create_task(client.generate(build_message("a", max_tokens=1000), reply))
    await eventually(lambda: reply.tokens, "the request decodes")
    for rank in pair.ranks:
        rank.send(signal.SIGTERM)
    await client.wait_health("NOT_SERVING")
    refused = await client.generate(build_message("late"))
    assert refused.status is not None
    assert (refused.code, refused.status.reason) == ("UNAVAILABLE", "ENGINE_DRAINING")
    await running
    assert (reply.code, len(reply.tokens)) == ("OK", 1000)
    assert [await asyncio.to_thread(rank.wait) for rank in pair.ranks] == [0, 0]
    assert not any(rank.logs("thread_failed") for rank in pair.ranks)


@pytest.mark.parametrize("rank", [0, 1])
async def test_sigterm_before_the_ranks_have_met_ends_the_process_with_0(tmp_path: Path, rank: int) -> None:
    with rank_processes(tmp_path) as ranks:
        lonely = ranks.ranks[rank]
        lonely.start()
        wait_until(lambda: lonely.logs("listening"), "the rank listens")
        lonely.send(signal.SIGTERM)
        assert await asyncio.to_thread(lonely.wait) == 0
