"""Turns what a step committed in a slot into the events of its request, and books the counts and times."""

from collections.abc import Iterator

from twinspark_engine.request import FinishReason
from twinspark_engine.scheduler.events import (
    Admitted,
    Event,
    Finished,
    PromptLogprobsKnown,
    RequestEvent,
    TokensCommitted,
)
from twinspark_engine.scheduler.plan import SlotOutput
from twinspark_engine.scheduler.running import RunningRequest


def admitted_event(running: RunningRequest) -> RequestEvent:
    """The event of a request that just got its slot."""
    queue_seconds = running.admitted_at - running.arrived_at
    return RequestEvent(running.request.request_id, Admitted(0, running.request.sampling.seed, queue_seconds))


def events_of_output(running: RunningRequest, output: SlotOutput, now: float) -> list[RequestEvent]:
    """Book one output and return its events, at most one of each kind, in the order of the stream."""
    return [RequestEvent(running.request.request_id, event) for event in _events(running, output, now)]


def _events(running: RunningRequest, output: SlotOutput, now: float) -> Iterator[Event]:
    if output.prompt_logprobs:
        yield PromptLogprobsKnown(output.prompt_logprobs_start, output.prompt_logprobs)
    if output.token_ids:
        if running.first_token_at is None:
            running.first_token_at = now
        running.last_token_at = now
        running.num_output_tokens += len(output.token_ids)
        yield TokensCommitted(output.token_ids, output.logprobs)
    if output.finish_reason is not None:
        yield _finished(running, output.finish_reason, output.stop_token_id, now)


def _finished(running: RunningRequest, reason: FinishReason, stop_token_id: int | None, now: float) -> Finished:
    first_token_at = now if running.first_token_at is None else running.first_token_at
    last_token_at = first_token_at if running.last_token_at is None else running.last_token_at
    num_prior = running.request.num_prior_output_tokens
    return Finished(
        reason=reason,
        stop_token_id=stop_token_id,
        prompt_tokens=running.request.num_prompt_tokens - num_prior,
        output_tokens=running.num_output_tokens + num_prior,
        cached_tokens=0,
        queue_seconds=running.admitted_at - running.arrived_at,
        prefill_seconds=first_token_at - running.admitted_at,
        decode_seconds=last_token_at - first_token_at,
        num_rounds=max(0, running.num_output_tokens - 1),
    )
