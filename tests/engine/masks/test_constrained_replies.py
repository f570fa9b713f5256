"""Constrained requests on real ranks with the demo model, each beside real grammar services."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from typing import Any

import pytest
import pytest_asyncio

from support.engine_client import EngineClient, Reply
from support.free_ports import pick_free_ports
from support.grammar_process import GrammarProcess, run_grammar
from support.grammar_texts import DEMO, demo_grammars
from support.rank_processes import rank_processes
from twinspark.engine.v1 import engine_pb2 as pb
from twinspark.grammar.v1 import grammar_pb2
from twinspark_grammar.source import GrammarKind, GrammarSource

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "s": {"type": "string", "maxLength": 8}},
        "required": ["n", "s"],
    }
)
REGEX = "(ab|cd|ef){3,9}"
LETTERS = "[a-z]{2000,}"
KINDS = {
    SCHEMA: (GrammarKind.JSON_SCHEMA, grammar_pb2.GRAMMAR_KIND_JSON_SCHEMA),
    REGEX: (GrammarKind.REGEX, grammar_pb2.GRAMMAR_KIND_REGEX),
    LETTERS: (GrammarKind.REGEX, grammar_pb2.GRAMMAR_KIND_REGEX),
}
PROMPT = demo_grammars().encode("<|user|>What is 47 + 38?<|assistant|><think></think>")
THINKING = demo_grammars().encode("<|user|>What is 47 + 38?<|assistant|><think>")
END_OF_THINKING = demo_grammars().vocabulary.added["</think>"]


class Deployment:
    """Ranks, and a grammar service of its own for each."""

    def __init__(self, engine: EngineClient, ports: Sequence[int], stack: AsyncExitStack) -> None:
        self.engine = engine
        self.services: dict[int, GrammarProcess] = {}
        self._ports = ports
        self._stack = stack

    async def start_service(self, rank: int) -> None:
        """Start a rank's service, again if it was killed."""
        self.services[rank] = await self._stack.enter_async_context(run_grammar(self._ports[rank]))

    def kill_service(self, rank: int) -> None:
        process = self.services[rank].process
        process.kill()
        process.wait()

    async def wait_no_streams(self) -> None:
        """Until no service knows of a request."""
        for service in self.services.values():
            while (await service.stats()).num_streams:
                await asyncio.sleep(0.02)


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=[1, 2])
async def deployed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Deployment]:
    """One rank or two, that every test leaves as they were."""
    ports = pick_free_ports(request.param)

    def of_rank(rank: int) -> dict[str, str]:
        settings = {
            "GRAMMAR": f"127.0.0.1:{ports[rank]}",
            "EXCHANGE_TIMEOUT_MS": "120000",
            "MASK_TIMEOUT_MS": "60000",
        }
        return {f"TWINSPARK_ENGINE_{name}": value for name, value in settings.items()}

    command = (sys.executable, "-m", "twinspark_engine")
    with rank_processes(tmp_path_factory.mktemp("ranks"), request.param, command, str(DEMO), of_rank) as ranks:
        ranks.start()
        async with AsyncExitStack() as stack:
            client = EngineClient(ranks.address)
            stack.push_async_callback(client.close)
            deployment = Deployment(client, ports, stack)
            for rank in range(request.param):
                await deployment.start_service(rank)
            await client.wait_health("SERVING")
            yield deployment


def constrain(name: str, source: str, *, is_late: bool = False, **fields: Any) -> pb.GenerateRequest:
    kind, number = KINDS[source]
    handle = GrammarSource(kind, source).handle(demo_grammars().vocabulary.digest)
    start = pb.GRAMMAR_START_AFTER_THINKING if is_late else pb.GRAMMAR_START_AT_ONCE
    grammar = pb.Grammar(handle=handle, kind=number, source=source, start=start)
    return free(name, prompt=THINKING if is_late else PROMPT, grammar=grammar, **fields)


def free(
    name: str, prompt: Sequence[int] = PROMPT, max_tokens: int = 120, temperature: float = 1.0, **fields: Any
) -> pb.GenerateRequest:
    return pb.GenerateRequest(
        request_id=name,
        prompt_token_ids=prompt,
        sampling=pb.SamplingParams(temperature=temperature, seed=7),
        limits=pb.Limits(max_tokens=max_tokens),
        logprobs=pb.LogprobsParams(num_top=2),
        **fields,
    )


def is_output_of(source: str, reply: Reply, start: int = 0) -> bool:
    """Whether the tokens from a start on are a whole output, with an end token behind it."""
    assert reply.finished is not None
    assert reply.tokens[-1] == reply.finished.stop_token_id
    text = demo_grammars().decode(reply.tokens[start:-1])
    return demo_grammars().accepts(demo_grammars().compile(KINDS[source][0], source), text)


def steps_of(reply: Reply) -> list[pb.Step]:
    return [response.step for response in reply.responses if response.HasField("step")]


REQUESTS = [
    constrain("schema", SCHEMA),
    constrain("schema greedy", SCHEMA, temperature=0),
    constrain("regex", REGEX, temperature=1.5),
    constrain("late", REGEX, is_late=True, temperature=0),
    constrain("background", SCHEMA, priority=pb.PRIORITY_BACKGROUND),
    free("free"),
    free("free greedy", temperature=0),
    free("free too", temperature=0.7, max_tokens=60),
]


async def test_constrained_replies_are_whole_outputs_and_the_same_alone_and_together(deployed: Deployment) -> None:
    engine, services = deployed.engine, deployed.services.values()
    before = [(await engine.stats()).masked_rows_total, *[(await service.stats()).masks_total for service in services]]
    alone = {request.request_id: await engine.generate(request) for request in REQUESTS}
    assert {reply.code for reply in alone.values()} == {"OK"}
    for name, source in (("schema", SCHEMA), ("schema greedy", SCHEMA), ("regex", REGEX), ("background", SCHEMA)):
        assert is_output_of(source, alone[name]), demo_grammars().decode(alone[name].tokens)
    late = alone["late"]
    assert is_output_of(REGEX, late, late.tokens.index(END_OF_THINKING) + 1)
    after = [(await engine.stats()).masked_rows_total, *[(await service.stats()).masks_total for service in services]]
    num_masked = sum(len(alone[request.request_id].tokens) for request in REQUESTS if request.HasField("grammar"))
    assert [new - old for new, old in zip(after, before, strict=True)] == [num_masked] * len(after)
    together = await asyncio.gather(*(engine.generate(request) for request in REQUESTS))
    for reply in together:
        assert steps_of(reply) == steps_of(alone[reply.request_id]), reply.request_id


async def test_a_background_request_that_yields_opens_its_stream_again(deployed: Deployment) -> None:
    engine = deployed.engine
    requests = [
        constrain(f"background {i}", LETTERS, max_tokens=80, priority=pb.PRIORITY_BACKGROUND, temperature=0.5 + i)
        for i in range(4)
    ]
    alone = [await engine.generate(request) for request in requests]
    before = await engine.stats()
    calls = [asyncio.create_task(engine.generate(request)) for request in requests]
    await engine.wait_stats(num_running=4)
    while (await engine.stats()).output_tokens_total < before.output_tokens_total + 24:
        await asyncio.sleep(0.005)
    assert (await engine.generate(constrain("urgent", REGEX))).code == "OK"
    replies = await asyncio.gather(*calls)
    assert (await engine.stats()).requests_yielded_total > before.requests_yielded_total
    assert [steps_of(reply) for reply in replies] == [steps_of(reply) for reply in alone]
    assert {len(reply.tokens) for reply in replies} == {80}
    await deployed.wait_no_streams()


async def test_a_cancelled_request_leaves_no_stream(deployed: Deployment) -> None:
    call = deployed.engine.stub.Generate(constrain("left", LETTERS, max_tokens=2000))
    for _ in range(5):
        await call.read()
    assert [(await service.stats()).num_streams for service in deployed.services.values()] == [1] * len(
        deployed.services
    )
    call.cancel()
    await deployed.wait_no_streams()


async def test_a_killed_service_ends_the_requests_that_need_it_and_no_other_and_serves_again_when_it_is_back(
    deployed: Deployment,
) -> None:
    engine, other = deployed.engine, free("free", max_tokens=400, temperature=0.9)
    undisturbed, schema = await engine.generate(other), await engine.generate(constrain("schema", SCHEMA))
    for rank in list(deployed.services):
        constrained, beside = Reply("letters"), Reply("free")
        calls = [
            asyncio.create_task(engine.generate(constrain("letters", LETTERS, max_tokens=2000), constrained)),
            asyncio.create_task(engine.generate(other, beside)),
        ]
        while len(constrained.tokens) < 4 or not beside.tokens:
            await asyncio.sleep(0.005)
        deployed.kill_service(rank)
        await asyncio.gather(*calls)
        assert constrained.status is not None
        assert (constrained.code, constrained.status.reason) == ("UNAVAILABLE", "GRAMMAR_LOST")
        assert constrained.finished is None
        assert beside.finished is not None
        assert steps_of(beside) == steps_of(undisturbed)
        assert (await engine.generate(constrain("while it is away", SCHEMA))).code == "UNAVAILABLE"
        await engine.wait_stats(num_running=0, num_blocks_used=0)
        await deployed.start_service(rank)
        while (again := await engine.generate(constrain("again", SCHEMA))).code == "UNAVAILABLE":
            await asyncio.sleep(0.05)
        assert steps_of(again) == steps_of(schema)
        await deployed.wait_no_streams()


async def test_a_grammar_that_is_refused_ends_its_request_alone(deployed: Deployment) -> None:
    undisturbed = await deployed.engine.generate(free("free"))
    bad = constrain("bad", SCHEMA)
    bad.grammar.handle = "of another source"
    worse = constrain("worse", REGEX)
    worse.grammar.source = "(ab"
    beside, *refused = await asyncio.gather(*(deployed.engine.generate(r) for r in (free("free"), bad, worse)))
    assert steps_of(beside) == steps_of(undisturbed)
    for reply in refused:
        assert reply.status is not None
        assert (reply.code, reply.status.reason, reply.tokens) == ("INVALID_ARGUMENT", "GRAMMAR_REFUSED", [])
    await deployed.wait_no_streams()
