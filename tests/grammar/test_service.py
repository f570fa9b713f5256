"""The service as a process: its calls, its limits, and what happens when a part of it is lost."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import psutil
import pytest
import pytest_asyncio
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from support.grammar_process import GrammarProcess, run_grammar
from support.grammar_texts import Grammars
from support.waiting import PATIENCE_SECONDS, eventually
from twinspark.grammar.v1 import grammar_pb2 as pb
from twinspark_grammar.source import GrammarKind, GrammarSource
from twinspark_rpc import RemoteStatus, read_status

SCHEMA, REGEX, EBNF, CHOICE = (
    pb.GRAMMAR_KIND_JSON_SCHEMA,
    pb.GRAMMAR_KIND_REGEX,
    pb.GRAMMAR_KIND_EBNF,
    pb.GRAMMAR_KIND_CHOICE,
)
INTEGERS = {"type": "array", "items": {"type": "integer"}}
NESTED: dict[str, Any] = {"type": "string"}
for _ in range(100):
    NESTED = {"type": "array", "items": NESTED}
HOSTILE: dict[str, tuple[int, Any, str]] = {
    "deeply nested": (SCHEMA, NESTED, "GRAMMAR_TOO_LARGE"),
    "nested beyond reading": (SCHEMA, '{"items":' * 9000 + "{}" + "}" * 9000, "GRAMMAR_TOO_LARGE"),
    "large source": (SCHEMA, {"enum": ["x" * 300_000]}, "GRAMMAR_TOO_LARGE"),
    "states without end": (SCHEMA, {"type": "integer", "multipleOf": 500}, "GRAMMAR_TOO_COMPLEX"),
    "many optional properties": (
        SCHEMA,
        {"type": "object", "properties": {f"p{i}": {} for i in range(900)}},
        "GRAMMAR_TOO_COMPLEX",
    ),
    "expression that explodes": (REGEX, "(" * 3 + "[ab]*a[ab]{18}" + "){1,90}" * 3, "GRAMMAR_TOO_COMPLEX"),
    "reference to itself": (SCHEMA, {"$ref": "#"}, "GRAMMAR_INVALID"),
    "circle of references": (
        SCHEMA,
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
        "GRAMMAR_INVALID",
    ),
    "rule without an end": (EBNF, "root ::= root", "GRAMMAR_INVALID"),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service() -> AsyncIterator[GrammarProcess]:
    """One service for the tests that leave it as it was. Compiling is limited to 3 seconds."""
    async with run_grammar(COMPILE_SECONDS=3, CACHE_MIB=1) as running:
        yield running


pytestmark = pytest.mark.asyncio(loop_scope="module")


async def refused(call: Any) -> RemoteStatus:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return read_status(caught.value)


async def test_masks_over_the_wire_are_those_of_the_grammar(service: GrammarProcess, demo: Grammars) -> None:
    compiled = await service.compile(SCHEMA, INTEGERS)
    stream = await service.open(SCHEMA, INTEGERS, compiled.handle)
    masks = demo.open(demo.compile(GrammarKind.JSON_SCHEMA, INTEGERS))
    drafts = demo.encode("[1, 2]x")
    for committed, drafted in (([], drafts), (drafts[:2], drafts[2:]), (drafts[2:4], [])):
        response, window = await stream.send(committed, drafted), masks.advance(committed, drafted)
        words = np.frombuffer(response.masks, "<u4").reshape(-1, (service.size + 31) // 32)
        assert np.array_equal(words, window.masks.view(np.uint32))
        assert response.num_allowed_drafts == window.num_allowed_drafts
        assert tuple(response.complete) == window.complete
    await stream.close()


async def test_a_handle_names_kind_and_source_and_is_found_compiled_the_second_time(service: GrammarProcess) -> None:
    first, again = await service.compile(REGEX, "a+b"), await service.compile(REGEX, "a+b")
    other = await service.compile(EBNF, 'root ::= "a"+ "b"')
    assert first.handle == again.handle != other.handle
    assert first.compile_us > 0 == again.compile_us


async def test_a_stream_compiles_what_this_replica_lacks(service: GrammarProcess, demo: Grammars) -> None:
    handle = GrammarSource(GrammarKind.CHOICE, '["never compiled"]').handle(demo.vocabulary.digest)
    before = await service.stats()
    stream = await service.open(CHOICE, '["never compiled"]', handle)
    assert (await stream.send([], demo.encode("never"))).num_allowed_drafts == len(demo.encode("never"))
    assert (await service.stats()).compiled_total == before.compiled_total + 1
    assert (await service.stats()).num_streams == 1
    await stream.close()
    assert (await service.stats()).num_streams == 0


async def test_strict_refuses_what_is_not_enforced_by_keyword_and_path(service: GrammarProcess) -> None:
    schema = {"type": "object", "properties": {"a/b": {"type": "array", "items": {}, "uniqueItems": True}}}
    lenient = await service.compile(SCHEMA, schema)
    assert [(gap.keyword, gap.path) for gap in lenient.unenforced] == [("uniqueItems", "/properties/a~1b")]
    status = await refused(service.compile(SCHEMA, schema, strict=True))
    assert (status.code, status.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "KEYWORD_NOT_ENFORCED")
    assert status.metadata == {"keyword": "uniqueItems", "path": "/properties/a~1b"}
    assert status.message == "uniqueItems at /properties/a~1b cannot be enforced: not supported"
    assert (await service.compile(SCHEMA, INTEGERS, strict=True)).unenforced == []


async def test_strict_of_tools_is_their_own(service: GrammarProcess) -> None:
    function: dict[str, Any] = {
        "name": "f",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer", "not": {}}}},
    }
    source = {"tools": [{"type": "function", "function": function}]}
    assert len((await service.compile(pb.GRAMMAR_KIND_TOOL_CALLS, source, strict=True)).unenforced) == 1
    function["strict"] = True
    status = await refused(service.compile(pb.GRAMMAR_KIND_TOOL_CALLS, source))
    assert status.metadata == {"keyword": "not", "path": "/tools/0/function/parameters/properties/a"}


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"vocabulary_size": 2023}, "open.vocabulary_size"),
        ({"vocabulary_size": 2**21}, "open.vocabulary_size"),
        ({"stop_token_ids": []}, "open.stop_token_ids"),
        ({"stop_token_ids": [2030]}, "open.stop_token_ids"),
        ({"stop_token_ids": [2010], "start": pb.MASK_START_AFTER_THINKING}, "open.stop_token_ids"),
        ({"start": 9}, "open.start"),
    ],
)
async def test_a_field_out_of_range_is_refused_by_name(
    service: GrammarProcess, fields: dict[str, Any], field: str
) -> None:
    handle = (await service.compile(CHOICE, '["x"]')).handle
    status = await refused(service.open(CHOICE, '["x"]', handle, **fields))
    assert (status.reason, status.metadata) == ("INVALID_FIELD", {"field": field}), status


async def test_a_stream_that_does_not_keep_its_order_is_refused(service: GrammarProcess) -> None:
    handle = (await service.compile(CHOICE, '["x"]')).handle
    grammar = pb.Grammar(kind=CHOICE, source='["x"]', handle=handle)
    opened = pb.MaskRequest(open=pb.MaskOpen(grammar=grammar, vocabulary_size=service.size, stop_token_ids=[1988]))
    window = pb.MaskRequest(window=pb.MaskWindow(round=1))
    many = pb.MaskRequest(window=pb.MaskWindow(draft_token_ids=[1] * 65))
    for messages, field in (
        ([window], "open"),
        ([opened, opened], "window"),
        ([opened, window], "window.round"),
        ([opened, many], "window.draft_token_ids"),
    ):
        mask: Any = service.stub.Mask
        call = mask()
        for message in messages[:-1]:
            await call.write(message)
            await call.read()
        await call.write(messages[-1])
        status = await refused(call.read())
        assert (status.reason, status.metadata) == ("INVALID_FIELD", {"field": field})


async def test_the_wrong_handle_and_an_unknown_kind_are_refused(service: GrammarProcess) -> None:
    assert (await refused(service.open(CHOICE, '["x"]', "0" * 64))).reason == "HANDLE_MISMATCH"
    assert (await refused(service.compile(0, ""))).metadata == {"field": "grammar.kind"}
    named = pb.CompileRequest(grammar=pb.Grammar(kind=CHOICE, source='["x"]', handle="h"))
    assert (await refused(service.stub.Compile(named))).metadata == {"field": "grammar.handle"}


async def test_a_committed_token_that_is_not_allowed_ends_the_stream(service: GrammarProcess, demo: Grammars) -> None:
    stream = await service.open(CHOICE, '["x"]', (await service.compile(CHOICE, '["x"]')).handle)
    status = await refused(stream.send(demo.encode("y")))
    assert (status.code, status.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "TOKEN_NOT_ALLOWED")


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_source_ends_with_its_reason_while_another_stream_goes_on(
    service: GrammarProcess, demo: Grammars, name: str
) -> None:
    kind, source, reason = HOSTILE[name]
    stream = await service.open(SCHEMA, INTEGERS, (await service.compile(SCHEMA, INTEGERS)).handle)
    await stream.send(demo.encode("["))
    hostile = asyncio.ensure_future(refused(service.compile(kind, source)))
    num_rounds = 0
    while not hostile.done() or num_rounds == 0:
        assert (await stream.send(demo.encode("1"), demo.encode(","))).num_allowed_drafts == 1
        num_rounds += 1
    status = await hostile
    assert (status.code, status.reason) == (grpc.StatusCode.INVALID_ARGUMENT, reason)
    assert num_rounds >= 1
    await stream.close()
    assert (await service.compile(REGEX, f"after|{name}")).handle
    assert (await service.stats()).num_compiling == 0


async def test_more_hostile_sources_than_compilers_end_one_after_the_other() -> None:
    # Far less than so many alternatives take on any machine.
    async with run_grammar(COMPILE_SECONDS=0.1) as service:
        sources = [{"enum": [f"{i} {n}" for n in range(15_000)]} for i in range(4)]
        answers = await asyncio.gather(*(refused(service.compile(SCHEMA, source)) for source in sources))
        assert {status.reason for status in answers} == {"GRAMMAR_TOO_COMPLEX"}
        stats = await service.stats()
        assert (stats.killed_total, stats.refused_total, stats.compiler_restarts_total) == (4, 4, 0)


async def test_the_cache_keeps_to_its_budget_and_streams_keep_what_it_drops(
    service: GrammarProcess, demo: Grammars
) -> None:
    first = {"type": "array", "items": {"enum": ["first", "grammar"]}}
    stream = await service.open(SCHEMA, first, (await service.compile(SCHEMA, first)).handle)
    before = await service.stats()
    for i in range(40):
        await service.compile(SCHEMA, {"type": "array", "items": {"type": "string", "maxLength": 40 + i}})
    after = await service.stats()
    assert after.evicted_total > before.evicted_total
    assert 0 < after.cache_bytes <= 1 << 20
    assert (await service.compile(SCHEMA, first)).compile_us > 0
    assert (await stream.send(demo.encode("["), demo.encode('"first"'))).num_allowed_drafts == len(
        demo.encode('"first"')
    )
    await stream.close()


async def test_one_source_that_many_ask_for_is_compiled_once(service: GrammarProcess) -> None:
    before = await service.stats()
    answers = await asyncio.gather(*(service.compile(REGEX, "(asked|for){3}") for _ in range(8)))
    assert len({answer.handle for answer in answers}) == 1
    assert (await service.stats()).compiled_total == before.compiled_total + 1


async def test_a_compilation_that_nobody_waits_for_leaves_the_queue_or_ends() -> None:
    slow = [{"enum": [f"{i} {n}" for n in range(60_000)]} for i in range(3)]
    async with run_grammar(COMPILE_SECONDS=600, COMPILERS=1, MAX_SOURCE_BYTES=4 << 20) as service:
        (host,) = psutil.Process(service.process.pid).children()

        async def wait_for_compiling(count: int) -> None:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while (await service.stats()).num_compiling != count:
                    await asyncio.sleep(0.02)

        running = asyncio.ensure_future(service.compile(SCHEMA, slow[0]))
        await eventually(host.children, "no compilation runs")
        (child,) = host.children()
        leaving, staying, alone = (asyncio.ensure_future(service.compile(SCHEMA, slow[i])) for i in (1, 1, 2))
        await wait_for_compiling(3)
        leaving.cancel()
        alone.cancel()
        await wait_for_compiling(2)
        running.cancel()
        await eventually(lambda: not child.is_running(), "a compilation outlives its callers")
        await eventually(host.children, "the other caller lost its compilation")
        staying.cancel()
        await wait_for_compiling(0)
        await eventually(lambda: not host.children(), "a compilation outlives its callers")
        stats = await service.stats()
        assert (stats.compiled_total, stats.refused_total, stats.killed_total) == (0, 0, 0)
        assert (await service.compile(REGEX, "after")).compile_us > 0


async def test_reflection_lists_the_service(service: GrammarProcess) -> None:
    stub = reflection_pb2_grpc.ServerReflectionStub(service.channel)
    call = stub.ServerReflectionInfo(iter([reflection_pb2.ServerReflectionRequest(list_services="")]))
    answer = await call.read()
    names = {entry.name for entry in answer.list_services_response.service}
    assert {"twinspark.grammar.v1.GrammarService", "grpc.health.v1.Health"} <= names


@pytest.mark.slow
async def test_a_lost_compiler_ends_its_compilations_and_nothing_else_and_comes_back(demo: Grammars) -> None:
    async with run_grammar(COMPILE_SECONDS=60) as service:
        handle = (await service.compile(SCHEMA, INTEGERS)).handle
        stream = await service.open(SCHEMA, INTEGERS, handle)
        await stream.send(demo.encode("["))
        running = asyncio.ensure_future(refused(service.compile(SCHEMA, {"enum": [str(i) for i in range(19_000)]})))
        (host,) = psutil.Process(service.process.pid).children()
        await eventually(host.children, "no compilation runs")
        (child,) = host.children()
        os.kill(host.pid, signal.SIGKILL)
        status = await running
        assert (status.code, status.reason, status.retryable) == (grpc.StatusCode.UNAVAILABLE, "COMPILER_LOST", True)
        assert (await stream.send(demo.encode("1"), demo.encode(","))).num_allowed_drafts == 1
        assert (await service.compile(SCHEMA, INTEGERS)).handle == handle
        assert (await service.compile(REGEX, "again")).compile_us > 0
        assert (await service.stats()).compiler_restarts_total == 1
        await eventually(lambda: not child.is_running() or child.status() == "zombie", "a child outlives its host", 90)
        await stream.close()


@pytest.mark.slow
async def test_a_compilation_gets_so_much_memory_and_no_more() -> None:
    schema = {"type": "integer", "multipleOf": 150}
    async with run_grammar(COMPILE_SECONDS=60, COMPILE_MEMORY_MIB=64) as service:
        status = await refused(service.compile(SCHEMA, schema))
        assert status.reason == "GRAMMAR_TOO_COMPLEX"
        assert "memory" in status.message
        assert (await service.compile(SCHEMA, INTEGERS)).handle
    async with run_grammar(COMPILE_SECONDS=60, COMPILE_MEMORY_MIB=4096) as service:
        assert (await service.compile(SCHEMA, schema)).handle


@pytest.mark.slow
async def test_a_drain_lets_streams_end_refuses_new_calls_and_leaves_no_process(demo: Grammars) -> None:
    async with run_grammar(LOG_LEVEL="debug") as service:
        handle = (await service.compile(SCHEMA, INTEGERS)).handle
        secret = await refused(service.compile(SCHEMA, '{"type": "a secret"}'))
        assert "a secret" in secret.message
        stream = await service.open(SCHEMA, INTEGERS, handle)
        await stream.send(demo.encode("["))
        children = psutil.Process(service.process.pid).children(recursive=True)
        service.terminate()
        while await service.is_serving():
            await asyncio.sleep(0.02)
        assert (await refused(service.compile(REGEX, "x"))).reason == "GRAMMAR_DRAINING"
        assert (await stream.send(demo.encode("1"), demo.encode(","))).num_allowed_drafts == 1
        await stream.close()
        assert await service.wait_ended() == 0
        _, alive = psutil.wait_procs(children, timeout=30)
        assert len(children) >= 1
        assert alive == []
        log = service.read_log()
    assert "rpc_refused" in [line["event"] for line in log]
    assert "secret" not in str(log)


@pytest.mark.slow
async def test_a_killed_service_leaves_no_process() -> None:
    async with run_grammar(COMPILE_SECONDS=60) as service:
        running = asyncio.ensure_future(refused(service.compile(SCHEMA, {"enum": [str(i) for i in range(19_000)]})))
        (host,) = psutil.Process(service.process.pid).children()
        await eventually(host.children, "no compilation runs")
        left = [host, *host.children()]
        service.process.kill()
        assert (await running).code is grpc.StatusCode.UNAVAILABLE
        assert psutil.wait_procs(left, timeout=30)[1] == []


@pytest.mark.parametrize(("content", "problem"), [(None, "cannot be read"), ("{}", "is no tokenizer")])
async def test_a_folder_without_a_tokenizer_is_refused_with_78(
    tmp_path: Path, content: str | None, problem: str
) -> None:
    if content is not None:
        (tmp_path / "tokenizer.json").write_text(content)
    service = GrammarProcess(0, MODEL=tmp_path)
    assert await service.wait_ended() == 78
    assert problem in service.read_log()[0]["message"]
    await service.channel.close()
