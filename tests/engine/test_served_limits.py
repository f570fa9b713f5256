"""The served engine takes its pool of blocks and its rule for memory from the settings, on every rank."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.engine_client import EngineClient, Reply
from support.rank_processes import RankPair, rank_processes
from support.waiting import eventually
from twinspark.engine.v1 import engine_pb2 as pb
from twinspark_tools.tiny_checkpoint import SHAPES, write_checkpoint

pytestmark = pytest.mark.slow
NUM_HELD_BLOCKS = 3


def build(name: str) -> pb.GenerateRequest:
    """A request that holds NUM_HELD_BLOCKS blocks."""
    prompt = [(len(name) * 31 + i * 7) % 1000 for i in range(600)]
    limits = pb.Limits(max_tokens=80, ignore_eos=True)
    return pb.GenerateRequest(request_id=name, prompt_token_ids=prompt, limits=limits)


@contextmanager
def serve(folder: Path, **variables: str) -> Iterator[RankPair]:
    write_checkpoint(folder / "tiny", SHAPES["tiny"])
    own = {f"TWINSPARK_ENGINE_{name}": value for name, value in variables.items()}
    command = (sys.executable, "-m", "twinspark_engine")
    model = str(folder / "tiny")
    with rank_processes(folder, command=command, model=model, of_rank=lambda _rank: own) as pair:
        pair.start()
        yield pair


@pytest.mark.parametrize(
    "variables",
    [{"KV_BLOCKS": "4", "CONTEXT": "1024"}, {"KV_BLOCKS": "6", "CONTEXT": "768", "MEMORY_ADMIT_MIB": str(1 << 24)}],
    ids=["too few blocks for both", "too little memory for both"],
)
async def test_a_second_request_waits_beside_a_free_slot_and_gets_the_tokens_that_it_gets_alone(
    tmp_path: Path, variables: dict[str, str]
) -> None:
    with serve(tmp_path, **variables) as pair:
        client = EngineClient(pair.address)
        await client.wait_health("SERVING")
        num_blocks = int(variables["KV_BLOCKS"])
        memory = await client.stub.GetMemory(pb.GetMemoryRequest())
        assert [rank.kv_pool.num_blocks for rank in memory.ranks] == [num_blocks, num_blocks]
        messages = [build(name) for name in ("first", "second")]
        first = Reply("first")
        calls = [asyncio.create_task(client.generate(messages[0], first))]
        await eventually(lambda: first.tokens, "the first decodes")
        calls.append(asyncio.create_task(client.generate(messages[1])))
        await client.wait_stats(num_waiting=1)
        seen = len(first.tokens)
        await eventually(lambda: len(first.tokens) >= seen + 20, "steps pass")
        stats = await client.stats()
        assert (stats.num_running, stats.num_waiting) == (1, 1)
        assert (stats.num_blocks, stats.num_blocks_used) == (num_blocks, NUM_HELD_BLOCKS)
        together = [reply.tokens for reply in await asyncio.gather(*calls)]
        assert together == [(await client.generate(message)).tokens for message in messages]
        assert (await client.stats()).num_blocks_used == 0
        await client.close()
