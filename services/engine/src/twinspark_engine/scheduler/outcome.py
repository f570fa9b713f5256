"""Turns what a step committed in a slot into the events of its request, and books the counts and times.

A request that yielded is run again and computes the same tokens again; its caller hears only what it lacks.
"""

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


def events_of_admission(running: RunningRequest, now: float) -> list[RequestEvent]:
    """Book that a request got a slot; the event, unless it had one before it yielded."""
    delivery = running.delivery
    if delivery.admitted_at is not None:
        return []
    delivery.admitted_at = now
    event = Admitted(0, running.request.sampling.seed, now - delivery.arrived_at)
    return [RequestEvent(running.request.request_id, event)]


def events_of_output(running: RunningRequest, output: SlotOutput, now: float) -> list[RequestEvent]:
    """Book one output and return its events, at most one of each kind, in the order of the stream."""
    return [RequestEvent(running.request.request_id, event) for event in _events(running, output, now)]


def _events(running: RunningRequest, output: SlotOutput, now: float) -> Iterator[Event]:
    yield from _prompt_logprobs(running, output)
    yield from _tokens(running, output, now)
    if output.finish_reason is not None:
        yield _finished(running, output.finish_reason, output.stop_token_id, now)


def _prompt_logprobs(running: RunningRequest, output: SlotOutput) -> Iterator[Event]:
    delivery, start = running.delivery, output.prompt_logprobs_start
    new = output.prompt_logprobs[max(0, delivery.next_prompt_index - start) :]
    if new:
        end = start + len(output.prompt_logprobs)
        delivery.next_prompt_index = end
        yield PromptLogprobsKnown(end - len(new), new)


def _tokens(running: RunningRequest, output: SlotOutput, now: float) -> Iterator[Event]:
    delivery = running.delivery
    num_heard = max(0, delivery.num_output_tokens - running.num_output_tokens)
    running.num_output_tokens += len(output.token_ids)
    new = output.token_ids[num_heard:]
    if new:
        if delivery.first_token_at is None:
            delivery.first_token_at = now
        delivery.last_token_at = now
        delivery.num_output_tokens = running.num_output_tokens
        yield TokensCommitted(new, output.logprobs[num_heard:])


def _finished(running: RunningRequest, reason: FinishReason, stop_token_id: int | None, now: float) -> Finished:
    delivery = running.delivery
    admitted_at = now if delivery.admitted_at is None else delivery.admitted_at
    first_token_at = now if delivery.first_token_at is None else delivery.first_token_at
    last_token_at = first_token_at if delivery.last_token_at is None else delivery.last_token_at
    num_prior = running.request.num_prior_output_tokens
    return Finished(
        reason=reason,
        stop_token_id=stop_token_id,
        prompt_tokens=running.request.num_prompt_tokens - num_prior,
        output_tokens=running.num_output_tokens + num_prior,
        cached_tokens=0,
        queue_seconds=admitted_at - delivery.arrived_at,
        prefill_seconds=first_token_at - admitted_at,
        decode_seconds=last_token_at - first_token_at,
        num_rounds=max(0, running.num_output_tokens - 1),
    )
