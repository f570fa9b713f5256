"""Converts between the engine's protobuf messages and the gateway's own types; no other module knows both."""

from collections.abc import Sequence

from twinspark.engine.v1 import engine_pb2 as pb
from twinspark_gateway.generation import (
    Admitted,
    EngineModel,
    EngineSizes,
    EngineStats,
    Event,
    Finished,
    Generation,
    Grammar,
    KvPool,
    MemoryBudget,
    PromptLogprobs,
    RankMemory,
    Step,
    TokenLogprob,
)

GAUGES = (
    "num_slots",
    "num_running",
    "num_waiting",
    "num_prefilling",
    "num_blocks",
    "num_blocks_used",
    "num_asyncio_tasks",
    "quiet_ms",
    "epoch",
)
COUNTERS = (
    "requests_total",
    "requests_failed_total",
    "requests_cancelled_total",
    "requests_yielded_total",
    "prompt_tokens_total",
    "cached_tokens_total",
    "output_tokens_total",
    "drafted_tokens_total",
    "accepted_tokens_total",
    "steps_total",
    "prefill_us_total",
    "decode_us_total",
    "mask_wait_us_total",
    "masked_rows_total",
)
# JSON has no infinity; OpenAI writes this for a token that cannot come.
LEAST_LOGPROB = -9999.0
_REASONS = {pb.FINISH_REASON_STOP: "stop", pb.FINISH_REASON_LENGTH: "length"}


def generation_to_proto(generation: Generation) -> pb.GenerateRequest:
    """Build the request of Generate."""
    sampling = generation.sampling
    request = pb.GenerateRequest(
        request_id=generation.request_id,
        prompt_token_ids=generation.prompt_token_ids,
        sampling=pb.SamplingParams(
            temperature=sampling.temperature,
            top_k=sampling.top_k,
            top_p=sampling.top_p,
            min_p=sampling.min_p,
            seed=sampling.seed,
            seed_offset=generation.seed_offset,
            repetition_penalty=sampling.repetition_penalty,
            frequency_penalty=sampling.frequency_penalty,
            presence_penalty=sampling.presence_penalty,
            logit_bias=sampling.logit_bias,
        ),
        limits=pb.Limits(
            max_tokens=generation.max_tokens,
            stop_token_ids=generation.stop_token_ids,
            ignore_eos=generation.ignore_eos,
            min_tokens=generation.min_tokens,
        ),
        draft_mode=pb.DRAFT_MODE_UNSPECIFIED if generation.draft else pb.DRAFT_MODE_OFF,
        priority=pb.PRIORITY_BACKGROUND if generation.is_background else pb.PRIORITY_UNSPECIFIED,
        grammar=_grammar_to_proto(generation.grammar),
        num_prior_output_tokens=generation.num_prior_output_tokens,
    )
    if generation.num_top_logprobs is not None:
        request.logprobs.num_top = generation.num_top_logprobs
    if generation.num_top_prompt_logprobs is not None:
        request.prompt_logprobs.num_top = generation.num_top_prompt_logprobs
    return request


def _grammar_to_proto(grammar: Grammar | None) -> pb.Grammar | None:
    if grammar is None:
        return None
    start = pb.GRAMMAR_START_AFTER_THINKING if grammar.starts_after_thinking else pb.GRAMMAR_START_AT_ONCE
    return pb.Grammar(handle=grammar.handle, kind=grammar.kind, source=grammar.source, start=start)


def event_from_proto(response: pb.GenerateResponse) -> Event | None:
    """Give the event of one message; None for an event of a newer engine."""
    match response.WhichOneof("event"):
        case "admitted":
            admitted = response.admitted
            return Admitted(admitted.num_cached_tokens, admitted.seed, admitted.queue_ms)
        case "prompt_logprobs":
            return PromptLogprobs(response.prompt_logprobs.start, _logprobs(response.prompt_logprobs.tokens))
        case "step":
            return Step(tuple(response.step.token_ids), _logprobs(response.step.logprobs))
        case "finished":
            return _finished(response.finished)
        case _:
            return None


def _logprobs(tokens: Sequence[pb.TokenLogprobs]) -> tuple[TokenLogprob, ...]:
    return tuple(TokenLogprob(max(token.logprob, LEAST_LOGPROB), _alternatives(token)) for token in tokens)


def _alternatives(token: pb.TokenLogprobs) -> tuple[tuple[int, float], ...]:
    values = (max(value, LEAST_LOGPROB) for value in token.top_logprobs)
    return tuple(zip(token.top_token_ids, values, strict=True))


def _finished(finished: pb.Finished) -> Finished:
    usage, timings = finished.usage, finished.timings
    return Finished(
        reason=_REASONS.get(finished.reason, "length"),
        stop_token_id=finished.stop_token_id if finished.HasField("stop_token_id") else None,
        prompt_tokens=usage.prompt_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cached_tokens,
        queue_s=timings.queue_us / 1e6,
        prefill_s=timings.prefill_us / 1e6,
        decode_s=timings.decode_us / 1e6,
        num_rounds=timings.num_rounds,
    )


def model_from_proto(response: pb.DescribeResponse) -> EngineModel:
    """Give the engine's description."""
    return EngineModel(
        context_length=response.context_length,
        vocabulary_size=response.vocabulary_size,
        eos_token_ids=frozenset(response.eos_token_ids),
        num_slots=response.num_slots,
        world_size=response.world_size,
        max_top_logprobs=response.max_top_logprobs,
        fingerprint=response.fingerprint,
        sizes=EngineSizes(
            block_tokens=response.block_tokens,
            pool_tokens=response.pool_tokens,
            chunk_tokens_alone=response.chunk_tokens_alone,
            chunk_tokens_beside_decoders=response.chunk_tokens_beside_decoders,
            short_prompt_tokens=response.short_prompt_tokens,
        ),
    )


def memory_from_proto(response: pb.GetMemoryResponse) -> list[RankMemory]:
    """Give every rank's account of memory, by rank."""
    return [_rank_memory(rank) for rank in response.ranks]


def _rank_memory(rank: pb.RankMemory) -> RankMemory:
    pool, budget = rank.kv_pool, rank.budget
    return RankMemory(
        rank=rank.rank,
        source=rank.source,
        resident_bytes=rank.resident_bytes,
        peak_resident_bytes=rank.peak_resident_bytes,
        total_bytes=rank.total_bytes,
        free_bytes=rank.free_bytes,
        available_bytes=rank.available_bytes,
        parts={name: int(num_bytes) for name, num_bytes in sorted(rank.parts.items())},
        kv_pool=KvPool(pool.num_blocks, pool.num_blocks_used, pool.block_tokens, pool.block_bytes)
        if rank.HasField("kv_pool")
        else None,
        budget=MemoryBudget(budget.slot_bytes, budget.reserve_bytes, budget.admit_bytes)
        if rank.HasField("budget")
        else None,
        num_open_descriptors=rank.num_open_descriptors,
    )


def stats_from_proto(response: pb.GetStatsResponse) -> EngineStats:
    """Give the engine's gauges and counters."""
    return EngineStats(
        state=pb.EngineState.Name(response.state).removeprefix("ENGINE_STATE_").lower(),
        gauges={name: int(getattr(response, name)) for name in GAUGES},
        counters={name: int(getattr(response, name)) for name in COUNTERS},
        slot_admissions=tuple(response.slot_admissions_total),
    )
