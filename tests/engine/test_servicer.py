"""EngineService over a real channel, with a hash runner behind it."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import pytest
from prometheus_client import CollectorRegistry

from support.engine_client import EngineClient, Reply, build_message
from support.hash_runner import VOCABULARY_SIZE, HashRunner
from support.waiting import PATIENCE_SECONDS, eventually
from twinspark.engine.v1 import engine_pb2 as pb
from twinspark.engine.v1.engine_pb2_grpc import add_EngineServiceServicer_to_server
from twinspark_engine.convert import RequestBounds
from twinspark_engine.loop import EngineLoop, Stop
from twinspark_engine.memory import measure_memory
from twinspark_engine.ranks.group import LoadedRank, SoloGroup
from twinspark_engine.scheduler.limits import SchedulerLimits
from twinspark_engine.scheduler.scheduler import Scheduler
from twinspark_engine.servicer import EngineDescription, EngineServicer
from twinspark_engine.streams import EventLoopListener, RequestStreams
from twinspark_rpc import ListenSettings, RpcServer

BOUNDS = RequestBounds(VOCABULARY_SIZE, 20, 0, frozenset({0, 5}), frozenset())
DESCRIPTION = EngineDescription(512, VOCABULARY_SIZE, (0, 5), 2, 1, "1x-float32-abc", "abc", 20, 256, 4, 128, 64, 0)


class _Listen(ListenSettings):
    pass


class HeldGroup(SoloGroup):
    """Forms when it is let."""

    def __init__(self) -> None:
        self.may_form = threading.Event()

    def form(self, load: Callable[[], None]) -> int:
        self.may_form.wait()
        return super().form(load)


@dataclass
class Service:
    client: EngineClient
    group: HeldGroup
    servicer: EngineServicer
    runner: HashRunner


@pytest.fixture
async def held() -> AsyncIterator[Service]:
    """A service whose ranks have not met."""
    streams, group = RequestStreams(), HeldGroup()
    server = RpcServer("engine", _Listen(), CollectorRegistry())
    listener = EventLoopListener(streams, server.set_serving)
    runner = HashRunner(num_slots=2)
    loaded = LoadedRank(runner, lambda: measure_memory(0, {"weights": 5}))
    scheduler = Scheduler(SchedulerLimits(2, 512, 64, 128, 1))
    loop = EngineLoop(scheduler, group, lambda: loaded, listener, time.monotonic)
    servicer = EngineServicer(loop, streams, listener, DESCRIPTION, BOUNDS)
    server.add(add_EngineServiceServicer_to_server, servicer, "twinspark.engine.v1.EngineService")
    await server.start()
    thread = threading.Thread(target=loop.run, daemon=True)
    thread.start()
    client = EngineClient(f"127.0.0.1:{server.port}")
    yield Service(client, group, servicer, runner)
    await client.close()
    group.may_form.set()
    runner.released.set()
    loop.post(Stop())
    await asyncio.to_thread(thread.join, PATIENCE_SECONDS)
    await server.stop()


@pytest.fixture
async def service(held: Service) -> Service:
    held.group.may_form.set()
    await held.client.wait_health("SERVING")
    return held


def refusal(reply: Reply) -> tuple[str, str]:
    assert reply.status is not None
    return reply.code, reply.status.reason


async def test_before_the_ranks_have_met_requests_are_refused_as_unavailable(held: Service) -> None:
    assert refusal(await held.client.generate(build_message("a"))) == ("UNAVAILABLE", "ENGINE_LOADING")
    assert await held.client.health() == "NOT_SERVING"
    assert (await held.client.stats()).state == pb.ENGINE_STATE_LOADING


async def test_describe_answers_what_never_changes(held: Service) -> None:
    answer = await held.client.stub.Describe(pb.DescribeRequest())
    assert (answer.context_length, answer.vocabulary_size, list(answer.eos_token_ids)) == (512, VOCABULARY_SIZE, [0, 5])
    assert (answer.fingerprint, answer.max_top_logprobs, answer.num_slots) == ("1x-float32-abc", 20, 2)
    assert (answer.block_tokens, answer.pool_tokens, answer.short_prompt_tokens) == (256, 4, 0)
    assert (answer.chunk_tokens_alone, answer.chunk_tokens_beside_decoders) == (128, 64)


async def test_a_bad_field_is_named_and_nothing_is_counted(service: Service) -> None:
    message = build_message("a", sampling=pb.SamplingParams(top_p=2.0))
    reply = await service.client.generate(message)
    assert refusal(reply) == ("INVALID_ARGUMENT", "INVALID_FIELD")
    assert reply.status is not None
    assert reply.status.metadata == {"field": "sampling.top_p"}
    assert (await service.client.stats()).requests_total == 0


async def test_a_request_beyond_the_context_is_refused_at_once(service: Service) -> None:
    reply = await service.client.generate(build_message("a", 500, 13))
    assert refusal(reply) == ("OUT_OF_RANGE", "CONTEXT_TOO_LONG")


async def test_requests_beyond_slots_and_queue_are_refused_and_the_others_finish(service: Service) -> None:
    service.runner.step_seconds = 0.005
    replies = await asyncio.gather(*(service.client.generate(build_message(f"r{i}", 5, 300)) for i in range(6)))
    codes = [reply.code for reply in replies]
    assert codes.count("OK") == 3, "two slots and a queue of one"
    assert {refusal(r) for r in replies if r.code != "OK"} == {("RESOURCE_EXHAUSTED", "QUEUE_FULL")}
    assert (await service.client.stats()).requests_total == codes.count("OK")


async def test_an_id_that_is_in_use_is_refused(service: Service) -> None:
    service.runner.hold_at = 2
    reply = Reply("a")
    running = asyncio.create_task(service.client.generate(build_message("a", 5, 100), reply))
    await eventually(lambda: reply.tokens, "the first request decodes")
    assert refusal(await service.client.generate(build_message("a"))) == ("INVALID_ARGUMENT", "REQUEST_ID_IN_USE")
    service.runner.released.set()
    assert (await running).code == "OK"
    assert (await service.client.generate(build_message("a"))).code == "OK"


async def test_stats_show_a_running_request_and_memory_is_answered(service: Service) -> None:
    service.runner.hold_at = 10
    reply = Reply("a")
    running = asyncio.create_task(service.client.generate(build_message("a", 5, 200), reply))
    await eventually(lambda: len(reply.tokens) == 10, "the request decodes")
    stats = await service.client.stats()
    await asyncio.sleep(0.01)
    assert (await service.client.stats()).quiet_ms > stats.quiet_ms, "it is held"
    assert (stats.state, stats.num_running, stats.num_slots) == (pb.ENGINE_STATE_SERVING, 1, 2)
    service.runner.released.set()
    memory = await service.client.stub.GetMemory(pb.GetMemoryRequest())
    assert dict(memory.ranks[0].parts) == {"weights": 5}
    await running
    assert (await service.client.stats()).quiet_ms == 0


async def test_stats_count_the_tasks_of_the_event_loop(service: Service) -> None:
    before = (await service.client.stats()).num_asyncio_tasks
    # The test shares the loop; far more than what calls and channel start and end meanwhile.
    leaked = [asyncio.create_task(asyncio.Event().wait()) for _ in range(100)]
    assert (await service.client.stats()).num_asyncio_tasks > before + 50
    for task in leaked:
        task.cancel()
    await asyncio.gather(*leaked, return_exceptions=True)
    assert (await service.client.stats()).num_asyncio_tasks < before + 50


async def test_log_probabilities_come_with_their_tokens(service: Service) -> None:
    message = build_message("a", 200, 3, logprobs=pb.LogprobsParams(), prompt_logprobs=pb.LogprobsParams())
    reply = await service.client.generate(message)
    events = [response.WhichOneof("event") for response in reply.responses]
    assert events == ["admitted", "prompt_logprobs", "prompt_logprobs", "step", "step", "step", "finished"]
    known = [r.prompt_logprobs for r in reply.responses if r.HasField("prompt_logprobs")]
    assert [(k.start, len(k.tokens)) for k in known] == [(1, 128), (129, 71)]
    assert [len(r.step.logprobs) for r in reply.responses if r.HasField("step")] == [1, 1, 1]


async def test_while_draining_new_requests_are_refused_and_running_ones_finish(service: Service) -> None:
    service.runner.hold_at = 2
    reply = Reply("a")
    running = asyncio.create_task(service.client.generate(build_message("a", 5, 100), reply))
    await eventually(lambda: reply.tokens, "the request decodes")
    drained = asyncio.create_task(service.servicer.drain())
    await asyncio.sleep(0)
    assert refusal(await service.client.generate(build_message("b"))) == ("UNAVAILABLE", "ENGINE_DRAINING")
    service.runner.released.set()
    await drained
    assert (await running).code == "OK"
