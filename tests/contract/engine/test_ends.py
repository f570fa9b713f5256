"""How requests of every EngineService end: refusals, cancels in each phase, and exactly one end for each."""

import asyncio
import itertools
from typing import Any

import grpc
import pytest

from support.engine_client import EngineClient
from twinspark.engine.v1 import engine_pb2 as pb

_ids = itertools.count()


def build(num_prompt_tokens: int = 4, max_tokens: int = 8, **fields: Any) -> pb.GenerateRequest:
    """Build a request that ignores end tokens."""
    values: dict[str, Any] = {
        "request_id": f"ends-{next(_ids)}",
        "prompt_token_ids": [(3 * i) % 200 for i in range(num_prompt_tokens)],
        "limits": pb.Limits(max_tokens=max_tokens, ignore_eos=True),
    }
    return pb.GenerateRequest(**values | fields)


async def describe(engine: EngineClient) -> pb.DescribeResponse:
    """Ask for the description."""
    described: pb.DescribeResponse = await engine.stub.Describe(pb.DescribeRequest())
    return described


def long_request(described: pb.DescribeResponse) -> pb.GenerateRequest:
    """Build a request that runs as long as the context allows."""
    return build(max_tokens=described.context_length - 4)


async def test_a_field_out_of_range_is_refused_by_name(engine: EngineClient) -> None:
    size = (await describe(engine)).vocabulary_size
    top = (await describe(engine)).max_top_logprobs + 1
    limits = pb.Limits(max_tokens=1)
    grammar = pb.Grammar(handle="h", kind=2, source="a+")
    cases: list[tuple[str, dict[str, Any]]] = [
        ("prompt_token_ids", {"prompt_token_ids": []}),
        ("prompt_token_ids", {"prompt_token_ids": [1, size]}),
        ("request_id", {"request_id": ""}),
        ("stop_token_ids", {"limits": pb.Limits(max_tokens=1, stop_token_ids=[size])}),
        ("temperature", {"sampling": pb.SamplingParams(temperature=-1)}),
        ("temperature", {"sampling": pb.SamplingParams(temperature=float("nan"))}),
        ("temperature", {"sampling": pb.SamplingParams(temperature=float("inf"))}),
        ("top_p", {"sampling": pb.SamplingParams(top_p=0)}),
        ("top_p", {"sampling": pb.SamplingParams(top_p=1.01)}),
        ("top_p", {"sampling": pb.SamplingParams(top_p=float("nan"))}),
        ("min_p", {"sampling": pb.SamplingParams(min_p=-0.1)}),
        ("min_p", {"sampling": pb.SamplingParams(min_p=1.1)}),
        ("repetition_penalty", {"sampling": pb.SamplingParams(repetition_penalty=0)}),
        ("repetition_penalty", {"sampling": pb.SamplingParams(repetition_penalty=float("nan"))}),
        ("frequency_penalty", {"sampling": pb.SamplingParams(frequency_penalty=2.01)}),
        ("presence_penalty", {"sampling": pb.SamplingParams(presence_penalty=-2.01)}),
        ("logit_bias", {"sampling": pb.SamplingParams(logit_bias={1: 101})}),
        ("logit_bias", {"sampling": pb.SamplingParams(logit_bias={size: 1})}),
        ("min_tokens", {"limits": pb.Limits(max_tokens=1, min_tokens=2)}),
        ("min_tokens", {"limits": pb.Limits(max_tokens=1, min_tokens=1, stop_token_ids=range(size))}),
        ("logprobs", {"logprobs": pb.LogprobsParams(num_top=top)}),
        ("prompt_logprobs", {"prompt_logprobs": pb.LogprobsParams(num_top=top)}),
        ("priority", {"priority": 7}),
        ("grammar.handle", {"grammar": pb.Grammar(kind=2, source="a+")}),
        ("grammar.kind", {"grammar": pb.Grammar(handle="h", source="a+")}),
        ("grammar.kind", {"grammar": pb.Grammar(handle="h", kind=2**32 - 1)}),
        ("grammar.start", {"grammar": pb.Grammar(handle="h", kind=2, start=7)}),  # type: ignore[arg-type]
        ("min_tokens", {"grammar": grammar, "limits": pb.Limits(max_tokens=2, min_tokens=1)}),
        ("ignore_eos", {"grammar": grammar, "limits": pb.Limits(max_tokens=2, ignore_eos=True)}),
    ]
    for name, fields in cases:
        reply = await engine.generate(build(**({"limits": limits} | fields)))
        assert reply.code == "INVALID_ARGUMENT", (name, fields)
        assert reply.status is not None
        assert name in reply.status.message
        assert name in reply.status.metadata["field"]
        assert reply.responses == []


async def test_a_grammar_is_unavailable_where_no_grammar_service_is(engine: EngineClient) -> None:
    grammar = pb.Grammar(handle="h", kind=2, source="a+", start=pb.GRAMMAR_START_AFTER_THINKING)
    reply = await engine.generate(build(limits=pb.Limits(max_tokens=2), grammar=grammar))
    assert reply.status is not None
    assert (reply.code, reply.status.reason, reply.responses) == ("UNAVAILABLE", "GRAMMAR_UNAVAILABLE", [])


async def test_a_request_that_exceeds_the_context_is_refused_and_one_that_just_fits_runs(
    engine: EngineClient,
) -> None:
    context = (await describe(engine)).context_length
    for prompt, limit in ((4, context - 3), (context, 1), (context + 1, 0)):
        reply = await engine.generate(build(prompt, limit))
        assert reply.code == "OUT_OF_RANGE", (prompt, limit)
    reply = await engine.generate(build(context - 2, 2))
    assert reply.finished is not None
    assert len(reply.tokens) == 2
    assert (await engine.generate(build(context, 0))).code == "OK"


async def test_a_full_queue_refuses_at_once(engine: EngineClient) -> None:
    described = await describe(engine)
    calls = [asyncio.ensure_future(engine.generate(long_request(described))) for _ in range(described.num_slots)]
    await engine.wait_stats(num_running=described.num_slots)
    for waiting in itertools.count():
        extra = asyncio.ensure_future(engine.generate(long_request(described)))
        while not extra.done() and (await engine.stats()).num_waiting == waiting:
            await asyncio.sleep(0.005)
        if extra.done():
            break
        calls.append(extra)
        assert waiting < 50
    assert (await extra).code == "RESOURCE_EXHAUSTED"
    assert (await engine.stats()).num_waiting == waiting > 0
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)


async def test_a_request_id_that_runs_is_refused(engine: EngineClient) -> None:
    described = await describe(engine)
    request = long_request(described)
    call = asyncio.ensure_future(engine.generate(request))
    await engine.wait_stats(num_running=1)
    reply = await engine.generate(request)
    assert reply.code == "INVALID_ARGUMENT"
    assert reply.status is not None
    assert "request_id" in reply.status.message
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    await engine.wait_stats(num_running=0)
    request.limits.max_tokens = 2
    assert (await engine.generate(request)).code == "OK"


async def test_a_cancel_while_decoding_frees_the_slot(engine: EngineClient) -> None:
    before = await engine.stats()
    call = engine.stub.Generate(long_request(await describe(engine)))
    responses = aiter(call)
    while not (await anext(responses)).HasField("step"):
        pass
    call.cancel()
    # Statistics may be a step behind.
    await engine.wait_stats(num_running=0, requests_cancelled_total=before.requests_cancelled_total + 1)
    assert (await engine.stats()).requests_failed_total == before.requests_failed_total


async def test_a_cancel_during_prefill_frees_the_slot(engine: EngineClient) -> None:
    before = await engine.stats()
    call = engine.stub.Generate(build((await describe(engine)).context_length - 4, 4))
    assert (await anext(aiter(call))).HasField("admitted")
    call.cancel()
    cancelled = before.requests_cancelled_total + 1
    await engine.wait_stats(num_running=0, num_prefilling=0, requests_cancelled_total=cancelled)


async def test_a_cancel_in_the_queue_leaves_the_others_alone(engine: EngineClient) -> None:
    described = await describe(engine)
    running = [asyncio.ensure_future(engine.generate(long_request(described))) for _ in range(described.num_slots)]
    await engine.wait_stats(num_running=described.num_slots)
    queued = engine.stub.Generate(long_request(described))
    reading = asyncio.ensure_future(anext(aiter(queued)))
    await engine.wait_stats(num_waiting=1)
    queued.cancel()
    await engine.wait_stats(num_waiting=0)
    with pytest.raises((asyncio.CancelledError, grpc.aio.AioRpcError)):
        await reading
    assert (await engine.stats()).num_running == described.num_slots
    for call in running:
        call.cancel()
    await asyncio.gather(*running, return_exceptions=True)


async def test_a_freed_slot_goes_to_the_request_that_waited_longest(engine: EngineClient) -> None:
    described = await describe(engine)
    blockers = [asyncio.ensure_future(engine.generate(long_request(described))) for _ in range(described.num_slots)]
    await engine.wait_stats(num_running=described.num_slots)
    first = asyncio.ensure_future(engine.generate(build(max_tokens=2)))
    await engine.wait_stats(num_waiting=1)
    second = asyncio.ensure_future(engine.generate(build(max_tokens=2)))
    await engine.wait_stats(num_waiting=2)
    blockers[0].cancel()
    replies = await asyncio.gather(first, second)
    assert replies[0].ended_at <= replies[1].ended_at
    assert [reply.code for reply in replies] == ["OK", "OK"]
    for call in blockers:
        call.cancel()
    await asyncio.gather(*blockers, return_exceptions=True)


async def test_a_background_request_yields_its_slot_and_its_stream_goes_on_where_it_stopped(
    engine: EngineClient,
) -> None:
    described = await describe(engine)
    before = await engine.stats()
    fields = {
        "priority": pb.PRIORITY_BACKGROUND,
        "logprobs": pb.LogprobsParams(num_top=1),
        "sampling": pb.SamplingParams(repetition_penalty=1.2, frequency_penalty=0.5),
    }
    requests = [build(70 + i, 150, **fields) for i in range(described.num_slots)]
    calls = [asyncio.ensure_future(engine.generate(request)) for request in requests]
    await engine.wait_stats(num_running=described.num_slots)
    while (await engine.stats()).output_tokens_total < before.output_tokens_total + 20:
        await asyncio.sleep(0.005)
    urgent = await engine.generate(build(max_tokens=3))
    assert not any(call.done() for call in calls)
    replies = await asyncio.gather(*calls)
    assert (await engine.stats()).requests_yielded_total > before.requests_yielded_total
    assert len(urgent.tokens) == 3
    for request, reply in zip(requests, replies, strict=True):
        alone = await engine.generate(request)
        assert [r.step for r in reply.responses if r.HasField("step")] == [
            r.step for r in alone.responses if r.HasField("step")
        ]
        assert [r.HasField("admitted") for r in reply.responses].count(True) == 1
        assert reply.finished is not None
        assert alone.finished is not None
        assert reply.finished.usage == alone.finished.usage


async def test_every_accepted_request_ends_exactly_once(engine: EngineClient) -> None:
    before = await engine.stats()
    requests = [build(10 + 20 * i, 800 if i in (1, 4) else 4 + i) for i in range(6)]
    calls = [asyncio.ensure_future(engine.generate(request)) for request in requests]
    await engine.wait_stats(requests_total=before.requests_total + 6)
    calls[1].cancel()
    calls[4].cancel()
    replies = await asyncio.gather(*calls, return_exceptions=True)
    for i, reply in enumerate(replies):
        if i in (1, 4):
            assert isinstance(reply, asyncio.CancelledError)
        else:
            assert not isinstance(reply, BaseException)
            assert reply.finished is not None
            assert len(reply.tokens) == 4 + i
    await engine.wait_stats(num_running=0, num_waiting=0, requests_cancelled_total=before.requests_cancelled_total + 2)
    after = await engine.stats()
    assert after.requests_total - before.requests_total == 6
    assert after.requests_failed_total == before.requests_failed_total


async def test_the_engine_describes_itself_and_accounts_for_memory(engine: EngineClient) -> None:
    described = await describe(engine)
    assert described.context_length > 0
    assert described.num_slots > 0
    assert described.world_size > 0
    assert described.fingerprint
    assert described.max_top_logprobs >= 20
    assert all(token_id < described.vocabulary_size for token_id in described.eos_token_ids)
    assert await describe(engine) == described
    memory = await engine.stub.GetMemory(pb.GetMemoryRequest())
    assert [rank.rank for rank in memory.ranks] == list(range(described.world_size))
    for rank in memory.ranks:
        assert 0 < rank.resident_bytes <= rank.peak_resident_bytes
        assert 0 < rank.free_bytes <= rank.total_bytes
        assert rank.source == "available"
        pool = rank.kv_pool
        assert (pool.num_blocks_used, pool.block_tokens) == (0, 256)
        assert 0 < pool.num_blocks * pool.block_bytes <= rank.parts["kv"]
        assert rank.parts["weights"] > 0
        assert 0 < rank.budget.slot_bytes <= rank.parts["state"]
        assert rank.budget.admit_bytes <= rank.budget.reserve_bytes
        assert rank.num_open_descriptors > 2
    stats = await engine.stats()
    assert stats.state == pb.ENGINE_STATE_SERVING
    assert stats.num_slots == described.num_slots
    assert stats.num_asyncio_tasks > 0


async def test_counters_grow_by_what_was_done(engine: EngineClient) -> None:
    before = await engine.stats()
    await engine.generate(build(30, 5))
    after = await engine.stats()
    assert after.prompt_tokens_total - before.prompt_tokens_total == 30
    assert after.output_tokens_total - before.output_tokens_total == 5
    assert after.requests_total - before.requests_total == 1
    assert after.steps_total > before.steps_total
