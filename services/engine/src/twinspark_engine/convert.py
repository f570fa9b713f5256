"""Engine messages of the wire to the engine's own types and back. Every field is checked or refused by name here."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from twinspark.engine.v1 import engine_pb2 as pb
from twinspark.grammar.v1 import grammar_pb2
from twinspark_engine.errors import GrammarUnavailableError, InvalidFieldError, UnsupportedFieldError
from twinspark_engine.request import FinishReason, Grammar, Limits, Request, SamplingParams
from twinspark_engine.scheduler.events import Admitted, Event, Finished, PromptLogprobsKnown, TokensCommitted
from twinspark_engine.scheduler.plan import TokenLogprobs
from twinspark_engine.seeds import final_seed, seed_for

MAX_REQUEST_ID_LENGTH = 256

FINISH_REASONS = {
    FinishReason.STOP: pb.FINISH_REASON_STOP,
    FinishReason.LENGTH: pb.FINISH_REASON_LENGTH,
}


@dataclass(frozen=True, slots=True)
class RequestBounds:
    """What bounds the fields of a request."""

    vocabulary_size: int
    max_top_logprobs: int
    seed_salt: int
    eos_token_ids: frozenset[int]
    masked_token_ids: frozenset[int]
    """Never drawn."""
    has_grammar_service: bool = False
    """Whether requests may be constrained."""


def request_from_proto(message: pb.GenerateRequest, bounds: RequestBounds) -> Request:
    """A checked request with every default filled in.

    Raises InvalidFieldError, UnsupportedFieldError, or GrammarUnavailableError for a request that is right otherwise.
    """
    _refuse_unsupported(message)
    _check(0 < len(message.request_id) <= MAX_REQUEST_ID_LENGTH, "request_id", "must have 1 to 256 characters")
    prompt = tuple(message.prompt_token_ids)
    _check(len(prompt) > 0, "prompt_token_ids", "must hold at least one id")
    _check_ids(prompt, "prompt_token_ids", bounds)
    _check(message.priority in pb.Priority.values(), "priority", "must be one of the priorities")
    num_prior = message.num_prior_output_tokens
    _check(num_prior < len(prompt), "num_prior_output_tokens", "must be smaller than the prompt")
    request = Request(
        request_id=message.request_id,
        prompt_token_ids=prompt,
        sampling=_sampling(message.sampling, prompt[: len(prompt) - num_prior], bounds),
        limits=_limits(message.limits, num_prior, bounds),
        num_top_logprobs=_num_top(message, "logprobs", bounds),
        num_prompt_top_logprobs=_num_top(message, "prompt_logprobs", bounds),
        num_prior_output_tokens=num_prior,
        is_background=message.priority == pb.PRIORITY_BACKGROUND,
        grammar=_grammar(message),
    )
    if request.grammar is not None and not bounds.has_grammar_service:
        raise GrammarUnavailableError
    return request


def event_to_proto(event: Event) -> pb.GenerateResponse:
    """One message of a request's stream."""
    match event:
        case Admitted():
            admitted = pb.Admitted(
                num_cached_tokens=event.num_cached_tokens, seed=event.seed, queue_ms=int(event.queue_seconds * 1000)
            )
            return pb.GenerateResponse(admitted=admitted)
        case PromptLogprobsKnown():
            known = pb.PromptLogprobs(start=event.start, tokens=logprobs_to_proto(event.tokens))
            return pb.GenerateResponse(prompt_logprobs=known)
        case TokensCommitted():
            step = pb.Step(
                token_ids=event.token_ids,
                logprobs=logprobs_to_proto(event.logprobs),
                num_accepted_tokens=event.num_accepted_tokens,
            )
            return pb.GenerateResponse(step=step)
        case Finished():
            return pb.GenerateResponse(finished=_finished_to_proto(event))


def logprobs_to_proto(entries: tuple[TokenLogprobs, ...]) -> Iterator[pb.TokenLogprobs]:
    """Log probabilities of consecutive tokens."""
    for entry in entries:
        yield pb.TokenLogprobs(
            logprob=entry.logprob, top_token_ids=entry.top_token_ids, top_logprobs=entry.top_logprobs
        )


def _finished_to_proto(event: Finished) -> pb.Finished:
    return pb.Finished(
        reason=FINISH_REASONS[event.reason],
        stop_token_id=event.stop_token_id,
        usage=pb.Usage(
            prompt_tokens=event.prompt_tokens, output_tokens=event.output_tokens, cached_tokens=event.cached_tokens
        ),
        timings=pb.Timings(
            queue_us=int(event.queue_seconds * 1e6),
            prefill_us=int(event.prefill_seconds * 1e6),
            decode_us=int(event.decode_seconds * 1e6),
            num_rounds=event.num_rounds,
        ),
    )


def _refuse_unsupported(message: pb.GenerateRequest) -> None:
    asked = {
        "images": bool(message.images),
        "draft_mode": message.draft_mode not in (pb.DRAFT_MODE_UNSPECIFIED, pb.DRAFT_MODE_OFF),
    }
    for field, is_asked in asked.items():
        if is_asked:
            raise UnsupportedFieldError(field)


def _sampling(sampling: pb.SamplingParams, seeded_prompt: tuple[int, ...], bounds: RequestBounds) -> SamplingParams:
    base = sampling.seed if sampling.HasField("seed") else seed_for(seeded_prompt, bounds.seed_salt)
    params = SamplingParams(
        seed=final_seed(base, sampling.seed_offset),
        temperature=sampling.temperature if sampling.HasField("temperature") else 1.0,
        top_k=min(sampling.top_k, bounds.vocabulary_size),
        top_p=sampling.top_p if sampling.HasField("top_p") else 1.0,
        min_p=sampling.min_p,
        repetition_penalty=sampling.repetition_penalty if sampling.HasField("repetition_penalty") else 1.0,
        frequency_penalty=sampling.frequency_penalty,
        presence_penalty=sampling.presence_penalty,
        logit_bias=tuple(sorted(sampling.logit_bias.items())),
    )
    _check_sampling(params, bounds)
    return params


def _check_sampling(params: SamplingParams, bounds: RequestBounds) -> None:
    _check(0 <= params.temperature < math.inf, "sampling.temperature", "must be 0 or more")
    _check(0 < params.top_p <= 1, "sampling.top_p", "must be above 0 and at most 1")
    _check(0 <= params.min_p <= 1, "sampling.min_p", "must be in 0 to 1")
    _check(0 < params.repetition_penalty < math.inf, "sampling.repetition_penalty", "must be above 0")
    _check(-2 <= params.frequency_penalty <= 2, "sampling.frequency_penalty", "must be in -2 to 2")
    _check(-2 <= params.presence_penalty <= 2, "sampling.presence_penalty", "must be in -2 to 2")
    _check_ids(tuple(token_id for token_id, _ in params.logit_bias), "sampling.logit_bias", bounds)
    are_in_range = all(-100 <= bias <= 100 for _, bias in params.logit_bias)
    _check(are_in_range, "sampling.logit_bias", "each value must be in -100 to 100")


def _limits(limits: pb.Limits, num_prior_output_tokens: int, bounds: RequestBounds) -> Limits:
    _check_ids(tuple(limits.stop_token_ids), "limits.stop_token_ids", bounds)
    stop_token_ids = frozenset(limits.stop_token_ids)
    most = limits.max_tokens + num_prior_output_tokens
    _check(limits.min_tokens <= most, "limits.min_tokens", f"must be at most the {most} output tokens of the limit")
    if limits.min_tokens > num_prior_output_tokens:
        never_first = stop_token_ids | bounds.eos_token_ids | bounds.masked_token_ids
        leaves_some = len(never_first) < bounds.vocabulary_size
        _check(leaves_some, "limits.min_tokens", "must be 0 where end tokens and stop ids leave no other token")
    return Limits(limits.max_tokens, stop_token_ids, limits.ignore_eos, limits.min_tokens)


def _grammar(message: pb.GenerateRequest) -> Grammar | None:
    if not message.HasField("grammar"):
        return None
    grammar, limits = message.grammar, message.limits
    _check(bool(grammar.handle), "grammar.handle", "must not be empty")
    kinds = grammar_pb2.GrammarKind.values()
    _check(grammar.kind != 0 and grammar.kind in kinds, "grammar.kind", "must be one of the kinds")
    _check(grammar.start in pb.GrammarStart.values(), "grammar.start", "must be one of the starts")
    # Where a grammar is complete only ids that end the output are left.
    _check(limits.min_tokens == 0, "limits.min_tokens", "must be 0 together with a grammar")
    _check(not limits.ignore_eos, "limits.ignore_eos", "must be false together with a grammar")
    is_late = grammar.start == pb.GRAMMAR_START_AFTER_THINKING
    return Grammar(grammar.handle, grammar.kind, grammar.source, starts_after_thinking=is_late)


def _num_top(message: pb.GenerateRequest, field: str, bounds: RequestBounds) -> int | None:
    if not message.HasField("logprobs" if field == "logprobs" else "prompt_logprobs"):
        return None
    num_top = (message.logprobs if field == "logprobs" else message.prompt_logprobs).num_top
    most = bounds.max_top_logprobs
    _check(num_top <= most, f"{field}.num_top", f"must be at most {most}")
    return num_top


def _check_ids(ids: tuple[int, ...], field: str, bounds: RequestBounds) -> None:
    if ids and max(ids) >= bounds.vocabulary_size:
        raise InvalidFieldError(field, f"ids must be below {bounds.vocabulary_size}")


def _check(is_right: bool, field: str, problem: str) -> None:
    if not is_right:
        raise InvalidFieldError(field, problem)
