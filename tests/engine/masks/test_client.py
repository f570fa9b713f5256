"""The client of a grammar service, against the service's own servicer over a real channel."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence

import numpy as np
import pytest
import pytest_asyncio
from prometheus_client import CollectorRegistry

from support.free_ports import pick_free_ports
from support.grammar_server import SERVICE, LocalGrammarService, serve_grammars
from support.grammar_texts import allowed_ids, demo_grammars
from support.waiting import PATIENCE_SECONDS, eventually
from twinspark.grammar.v1 import grammar_pb2 as pb
from twinspark.grammar.v1.grammar_pb2_grpc import GrammarServiceServicer, add_GrammarServiceServicer_to_server
from twinspark_engine.masks.client import GrammarClient, GrammarStream
from twinspark_engine.masks.source import Masks
from twinspark_engine.request import ConstraintFailure, Grammar
from twinspark_grammar.source import GrammarKind, GrammarSource
from twinspark_rpc import ChannelSettings, ListenSettings, RpcServer, open_channel

SOURCE = '{"type": "array", "items": {"type": "integer"}}'
REGEX = "(ab|cd)+"


class _Settings(ChannelSettings):
    pass


def build_client(address: str) -> GrammarClient:
    return GrammarClient(open_channel(address, _Settings(), max_backoff_seconds=0.1), demo_grammars().size)


@pytest_asyncio.fixture
async def service() -> AsyncIterator[LocalGrammarService]:
    async with serve_grammars() as running:
        yield running


@pytest_asyncio.fixture
async def client(service: LocalGrammarService) -> AsyncIterator[GrammarClient]:
    client = build_client(service.address)
    yield client
    await client.close()


def grammar_of(service: LocalGrammarService, source: str = SOURCE, *, is_late: bool = False) -> Grammar:
    kind = GrammarKind.JSON_SCHEMA if source.startswith("{") else GrammarKind.REGEX
    number = pb.GRAMMAR_KIND_JSON_SCHEMA if source.startswith("{") else pb.GRAMMAR_KIND_REGEX
    handle = service.grammars.handle_of(GrammarSource(kind, source))
    return Grammar(handle, number, source, starts_after_thinking=is_late)


def open_stream(client: GrammarClient, grammar: Grammar, name: str = "one") -> GrammarStream:
    return client.open(name, grammar, [demo_grammars().end])


async def ask(stream: GrammarStream, committed: Sequence[int] = (), seconds: float = PATIENCE_SECONDS) -> Masks:
    """Post and wait as the step thread does."""
    stream.post(committed)
    return await asyncio.to_thread(stream.wait, seconds)


def ids_of(answer: Masks) -> list[int]:
    assert not isinstance(answer, ConstraintFailure), answer
    assert len(answer) == 1
    bits = np.unpackbits(np.frombuffer(answer[0], np.uint8), bitorder="little")
    found: list[int] = np.flatnonzero(bits).tolist()
    return found


async def test_the_masks_of_every_round_are_those_of_the_tokens_committed_so_far(
    service: LocalGrammarService, client: GrammarClient
) -> None:
    expected = demo_grammars().open(demo_grammars().compile(GrammarKind.JSON_SCHEMA, SOURCE))
    stream, draw, committed = open_stream(client, grammar_of(service)), random.Random(3), list[int]()
    for _ in range(20):
        allowed = ids_of(await ask(stream, committed))
        assert allowed == allowed_ids(expected.advance(committed, []))
        going_on = [token_id for token_id in allowed if token_id != demo_grammars().end]
        if not going_on:
            break
        committed = [draw.choice(going_on)]
    assert service.stats.masks_total > 2
    stream.close()
    await eventually(lambda: service.stats.num_streams == 0, "the service forgets the request")


async def test_two_streams_do_not_disturb_each_other(service: LocalGrammarService, client: GrammarClient) -> None:
    first = open_stream(client, grammar_of(service))
    # A name that is no metadata does no harm.
    second = open_stream(client, grammar_of(service, REGEX), "n\u00e4me\n")
    first.post(())
    second.post(())
    texts = [demo_grammars().decode(ids_of(await asyncio.to_thread(stream.wait, 60.0))) for stream in (second, first)]
    assert "a" in texts[0]
    assert "[" in texts[1]
    assert "[" not in texts[0]


async def test_until_the_end_of_thinking_everything_but_the_ends_is_allowed(
    service: LocalGrammarService, client: GrammarClient
) -> None:
    grammars = demo_grammars()
    stream = open_stream(client, grammar_of(service, REGEX, is_late=True))
    waiting = ids_of(await ask(stream))
    assert grammars.end not in waiting
    assert len(waiting) == len(grammars.vocabulary.token_ids) - 1
    assert ids_of(await ask(stream, grammars.encode("hm"))) == waiting
    constrained = ids_of(await ask(stream, [grammars.vocabulary.added["</think>"]]))
    assert 0 < len(constrained) < 20


async def test_a_refused_grammar_is_told_from_a_lost_service(
    service: LocalGrammarService, client: GrammarClient
) -> None:
    good = grammar_of(service)
    for bad in (
        grammar_of(service, "(unclosed"),
        Grammar("another", good.kind, good.source),
        Grammar(good.handle, 6, good.source),
    ):
        assert await ask(open_stream(client, bad)) is ConstraintFailure.REFUSED
    assert ids_of(await ask(open_stream(client, good)))


async def test_a_token_that_is_not_allowed_is_told(service: LocalGrammarService, client: GrammarClient) -> None:
    stream = open_stream(client, grammar_of(service))
    await ask(stream)
    assert await ask(stream, demo_grammars().encode("x")) is ConstraintFailure.STUCK


async def test_masks_that_do_not_come_in_time_are_given_up(service: LocalGrammarService, client: GrammarClient) -> None:
    service.threads.may_work.clear()
    stream = open_stream(client, grammar_of(service))
    assert await ask(stream, seconds=0.05) is ConstraintFailure.SLOW
    stream.close()
    await eventually(lambda: service.stats.num_streams == 0, "the service forgets the request")
    service.threads.may_work.set()
    assert ids_of(await ask(open_stream(client, grammar_of(service))))


@pytest.mark.parametrize("is_waiting", [False, True])
async def test_a_lost_service_is_told_at_once_and_one_that_comes_back_serves(is_waiting: bool) -> None:
    port = pick_free_ports(1)[0]
    client = build_client(f"127.0.0.1:{port}")
    async with serve_grammars(port) as service:
        grammar = grammar_of(service)
        stream = open_stream(client, grammar)
        committed = ids_of(await ask(stream))[:1]
        if is_waiting:
            service.threads.may_work.clear()
            stream.post(committed)
            await eventually(lambda: service.threads.num_begun == 2, "the mask is being made")
    if not is_waiting:
        stream.post(committed)
    assert await asyncio.to_thread(stream.wait, PATIENCE_SECONDS) is ConstraintFailure.LOST
    assert await ask(open_stream(client, grammar)) is ConstraintFailure.LOST
    async with serve_grammars(port):
        answer: Masks = ConstraintFailure.LOST
        while answer is ConstraintFailure.LOST:  # the channel connects again by itself
            answer = await ask(open_stream(client, grammar))
        assert ids_of(answer)
    await client.close()


@pytest.mark.parametrize("num_rounds", [0, 1, 3])
async def test_a_stream_ends_when_it_is_closed_whatever_is_under_way(
    service: LocalGrammarService, client: GrammarClient, num_rounds: int
) -> None:
    stream = open_stream(client, grammar_of(service, REGEX))
    committed: list[int] = []
    for _ in range(num_rounds):
        committed = ids_of(await ask(stream, committed))[:1]
    if num_rounds == 3:
        service.threads.may_work.clear()
        stream.post(committed)
        await asyncio.sleep(0)
    stream.close()
    await eventually(lambda: service.stats.num_streams == 0 and not client._tasks, "nothing is left of the stream")


async def test_the_end_of_the_client_ends_its_streams(service: LocalGrammarService) -> None:
    client = build_client(service.address)
    stream = open_stream(client, grammar_of(service))
    assert ids_of(await ask(stream))
    await client.close()
    assert await asyncio.to_thread(stream.wait, PATIENCE_SECONDS) is ConstraintFailure.LOST
    await eventually(lambda: service.stats.num_streams == 0, "the service forgets the request")


class Broken(GrammarServiceServicer):
    """Answers with what was not asked for, or ends too early."""

    def __init__(self, answer: pb.MaskResponse | None) -> None:
        self._answer = answer

    async def Compile(self, request: pb.CompileRequest, context: object) -> pb.CompileResponse:
        raise NotImplementedError

    async def GetStats(self, request: pb.GetStatsRequest, context: object) -> pb.GetStatsResponse:
        raise NotImplementedError

    async def Mask(
        self, request_iterator: AsyncIterator[pb.MaskRequest], context: object
    ) -> AsyncIterator[pb.MaskResponse]:
        await anext(request_iterator)
        yield pb.MaskResponse()
        await anext(request_iterator)
        if self._answer is not None:
            yield self._answer


@pytest.mark.parametrize(
    "answer",
    [
        None,
        pb.MaskResponse(round=1, masks=b"\xff" * (-(-demo_grammars().size // 32) * 4)),
        pb.MaskResponse(masks=b"\xff" * (-(-demo_grammars().size // 32) * 4 - 4)),
        pb.MaskResponse(num_allowed_drafts=1, masks=b"\xff" * (-(-demo_grammars().size // 32) * 4)),
        pb.MaskResponse(),
    ],
)
async def test_an_answer_that_is_none_counts_as_a_loss(answer: pb.MaskResponse | None) -> None:
    server = RpcServer("grammar", ListenSettings(drain_seconds=0), CollectorRegistry())
    server.add(add_GrammarServiceServicer_to_server, Broken(answer), SERVICE)
    await server.start()
    client = build_client(f"127.0.0.1:{server.port}")
    grammar = Grammar("h", pb.GRAMMAR_KIND_REGEX, "a")
    assert await ask(open_stream(client, grammar)) is ConstraintFailure.LOST
    await client.close()
    await server.stop()


class Watching(Broken):
    """Takes its time to end a stream that has nothing more to ask, and notes whether the caller waited for that."""

    def __init__(self, answer: pb.MaskResponse) -> None:
        super().__init__(answer)
        self.ends: list[str] = []

    async def Mask(
        self, request_iterator: AsyncIterator[pb.MaskRequest], context: object
    ) -> AsyncIterator[pb.MaskResponse]:
        async for response in super().Mask(request_iterator, context):
            yield response
        try:
            assert await anext(request_iterator, None) is None
            await asyncio.sleep(0.3)
            self.ends.append("in order")
        except asyncio.CancelledError:
            self.ends.append("cancelled")
            raise


async def test_a_stream_that_has_its_answers_is_ended_in_order() -> None:
    watching = Watching(pb.MaskResponse(masks=b"\xff" * (-(-demo_grammars().size // 32) * 4)))
    server = RpcServer("grammar", ListenSettings(drain_seconds=0), CollectorRegistry())
    server.add(add_GrammarServiceServicer_to_server, watching, SERVICE)
    await server.start()
    client = build_client(f"127.0.0.1:{server.port}")
    stream = open_stream(client, Grammar("h", pb.GRAMMAR_KIND_REGEX, "a"))
    assert ids_of(await ask(stream))
    stream.close()
    await eventually(lambda: watching.ends, "the stream ends")
    assert watching.ends == ["in order"]
    await client.close()
    await server.stop()
