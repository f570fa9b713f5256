"""Rank messages of the wire to the engine's own types and back: plans, handshakes, accounts of memory."""

from collections.abc import Mapping

from twinspark.engine.v1 import engine_pb2 as engine_pb
from twinspark.engine.v1 import rank_pb2 as pb
from twinspark_engine.memory import KvPool, MemoryAccount, MemoryBudget
from twinspark_engine.ranks.handshake import Difference
from twinspark_engine.request import Grammar, Limits, Request, SamplingParams
from twinspark_engine.scheduler.plan import Admission, DecodeWindow, PrefillChunk, StepPlan
from twinspark_engine.seeds import SEED_RANGE


def plan_to_proto(plan: StepPlan) -> pb.StepPlan:
    """The plan as it travels on Follow."""
    return pb.StepPlan(
        epoch=plan.epoch,
        step=plan.step,
        cancelled_slots=plan.cancelled_slots,
        admissions=[
            pb.Admission(slot=a.slot, request=_request_to_proto(a.request), num_cached_tokens=a.num_cached_tokens)
            for a in plan.admissions
        ],
        chunks=[
            pb.PrefillChunk(slot=c.slot, start=c.start, num_scheduled_tokens=c.num_scheduled_tokens)
            for c in plan.chunks
        ],
        windows=[
            pb.DecodeWindow(slot=w.slot, max_rows=w.max_rows, draft_mode=engine_pb.DRAFT_MODE_OFF) for w in plan.windows
        ],
        report_memory=plan.report_memory,
    )


def plan_from_proto(message: pb.StepPlan) -> StepPlan:
    """The plan as rank 0 made it."""
    return StepPlan(
        epoch=message.epoch,
        step=message.step,
        cancelled_slots=tuple(message.cancelled_slots),
        admissions=tuple(
            Admission(a.slot, _request_from_proto(a.request), a.num_cached_tokens) for a in message.admissions
        ),
        chunks=tuple(PrefillChunk(c.slot, c.start, c.num_scheduled_tokens) for c in message.chunks),
        windows=tuple(DecodeWindow(w.slot, w.max_rows) for w in message.windows),
        report_memory=message.report_memory,
    )


def memory_to_proto(account: MemoryAccount) -> engine_pb.RankMemory:
    """One rank's account of memory."""
    message = engine_pb.RankMemory(
        rank=account.rank,
        source=account.source,
        resident_bytes=account.resident_bytes,
        peak_resident_bytes=account.peak_resident_bytes,
        total_bytes=account.total_bytes,
        free_bytes=account.free_bytes,
        available_bytes=account.available_bytes,
        parts=dict(account.parts),
        num_open_descriptors=account.num_open_descriptors,
    )
    if (pool := account.kv_pool) is not None:
        message.kv_pool.num_blocks, message.kv_pool.num_blocks_used = pool.num_blocks, pool.num_used_blocks
        message.kv_pool.block_tokens, message.kv_pool.block_bytes = pool.block_tokens, pool.block_bytes
    if (budget := account.budget) is not None:
        message.budget.slot_bytes = budget.slot_bytes
        message.budget.reserve_bytes, message.budget.admit_bytes = budget.reserve_bytes, budget.admit_bytes
    return message


def memory_from_proto(message: engine_pb.RankMemory) -> MemoryAccount:
    """One rank's account of memory."""
    pool, budget = message.kv_pool, message.budget
    return MemoryAccount(
        rank=message.rank,
        source=message.source,
        resident_bytes=message.resident_bytes,
        peak_resident_bytes=message.peak_resident_bytes,
        total_bytes=message.total_bytes,
        free_bytes=message.free_bytes,
        available_bytes=message.available_bytes,
        parts=dict(message.parts),
        kv_pool=KvPool(pool.num_blocks, pool.num_blocks_used, pool.block_tokens, pool.block_bytes)
        if message.HasField("kv_pool")
        else None,
        budget=MemoryBudget(budget.slot_bytes, budget.reserve_bytes, budget.admit_bytes)
        if message.HasField("budget")
        else None,
        num_open_descriptors=message.num_open_descriptors,
    )


def differences_to_proto(differences: list[Difference]) -> list[pb.Difference]:
    """What two ranks disagree on."""
    return [
        pb.Difference(name=d.name, leader_value=d.leader_value, follower_value=d.follower_value) for d in differences
    ]


def values_from_proto(message: pb.HandshakeRequest | pb.HandshakeResponse) -> tuple[dict[str, str], dict[str, str]]:
    """Settings and hashes of a handshake message."""
    settings: Mapping[str, str] = message.settings
    hashes: Mapping[str, str] = message.hashes
    return dict(settings), dict(hashes)


def _request_to_proto(request: Request) -> engine_pb.GenerateRequest:
    sampling, limits = request.sampling, request.limits
    message = engine_pb.GenerateRequest(
        request_id=request.request_id,
        prompt_token_ids=request.prompt_token_ids,
        sampling=engine_pb.SamplingParams(
            temperature=sampling.temperature,
            top_k=sampling.top_k,
            top_p=sampling.top_p,
            min_p=sampling.min_p,
            seed=_to_signed(sampling.seed),
            repetition_penalty=sampling.repetition_penalty,
            frequency_penalty=sampling.frequency_penalty,
            presence_penalty=sampling.presence_penalty,
            logit_bias=dict(sampling.logit_bias),
        ),
        limits=engine_pb.Limits(
            max_tokens=limits.max_tokens,
            stop_token_ids=sorted(limits.stop_token_ids),
            ignore_eos=limits.ignore_eos,
            min_tokens=limits.min_tokens,
        ),
        num_prior_output_tokens=request.num_prior_output_tokens,
        priority=engine_pb.PRIORITY_BACKGROUND if request.is_background else engine_pb.PRIORITY_UNSPECIFIED,
    )
    if request.num_top_logprobs is not None:
        message.logprobs.num_top = request.num_top_logprobs
    if request.num_prompt_top_logprobs is not None:
        message.prompt_logprobs.num_top = request.num_prompt_top_logprobs
    if (grammar := request.grammar) is not None:
        start = (
            engine_pb.GRAMMAR_START_AFTER_THINKING if grammar.starts_after_thinking else engine_pb.GRAMMAR_START_AT_ONCE
        )
        message.grammar.CopyFrom(
            engine_pb.Grammar(handle=grammar.handle, kind=grammar.kind, source=grammar.source, start=start)
        )
    return message


def _request_from_proto(message: engine_pb.GenerateRequest) -> Request:
    sampling, limits = message.sampling, message.limits
    return Request(
        request_id=message.request_id,
        prompt_token_ids=tuple(message.prompt_token_ids),
        sampling=SamplingParams(
            seed=sampling.seed % SEED_RANGE,
            temperature=sampling.temperature,
            top_k=sampling.top_k,
            top_p=sampling.top_p,
            min_p=sampling.min_p,
            repetition_penalty=sampling.repetition_penalty,
            frequency_penalty=sampling.frequency_penalty,
            presence_penalty=sampling.presence_penalty,
            logit_bias=tuple(sorted(sampling.logit_bias.items())),
        ),
        limits=Limits(limits.max_tokens, frozenset(limits.stop_token_ids), limits.ignore_eos, limits.min_tokens),
        num_top_logprobs=message.logprobs.num_top if message.HasField("logprobs") else None,
        num_prompt_top_logprobs=message.prompt_logprobs.num_top if message.HasField("prompt_logprobs") else None,
        num_prior_output_tokens=message.num_prior_output_tokens,
        is_background=message.priority == engine_pb.PRIORITY_BACKGROUND,
        grammar=_grammar_from_proto(message.grammar) if message.HasField("grammar") else None,
    )


def _grammar_from_proto(message: engine_pb.Grammar) -> Grammar:
    is_late = message.start == engine_pb.GRAMMAR_START_AFTER_THINKING
    return Grammar(message.handle, message.kind, message.source, starts_after_thinking=is_late)


def _to_signed(seed: int) -> int:
    """The wire's seed is signed: the same 64 bits."""
    return seed - SEED_RANGE if seed >= SEED_RANGE // 2 else seed
