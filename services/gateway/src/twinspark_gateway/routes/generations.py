"""What the generating endpoints share: building Generate calls, and sending a reply streamed or whole."""

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack
from typing import Any, Protocol

from starlette.requests import Request
from starlette.responses import Response

from twinspark_gateway.errors import ApiError
from twinspark_gateway.gateway import Gateway, gateway_of
from twinspark_gateway.generation import EngineModel, Generation, Grammar
from twinspark_gateway.reply.choice import Choice
from twinspark_gateway.reply.fan_out import FanOut
from twinspark_gateway.reply.usage import Usage
from twinspark_gateway.request_record import RequestRecord, record_of
from twinspark_gateway.schemas.chat_reply import ReplyHead
from twinspark_gateway.schemas.fields import refuse
from twinspark_gateway.schemas.sampling import ReplyParams
from twinspark_gateway.web.disconnect import run_while_connected
from twinspark_gateway.web.event_stream import OPENAI_EVENTS, EventForm, EventStream


class Run(Protocol):
    """One running request of any of them."""

    @property
    def choices(self) -> Sequence[Choice]:
        """The choices, in the order of the prompts."""
        ...

    def chunks(self, fan_out: FanOut) -> AsyncGenerator[dict[str, Any], None]:
        """Give the chunks of the stream."""
        ...

    async def whole(self, fan_out: FanOut) -> Response:
        """Give the whole reply."""
        ...

    def usage(self) -> Usage:
        """Give the counts so far, also when the request ended early."""
        ...


def build_generation(
    record: RequestRecord,
    params: ReplyParams,
    prompt: Sequence[int],
    *,
    max_tokens: int,
    seed_offset: int,
    num_top_logprobs: int | None,
    num_top_prompt_logprobs: int | None = None,
    grammar: Grammar | None = None,
) -> Generation:
    """Build the Generate call of one choice, and note the request in its record. Raises ApiError."""
    if params.min_tokens > max_tokens:
        expected = f"at most {max_tokens}, the number of output tokens that this request may have"
        raise refuse("min_tokens", params.min_tokens, expected)
    position = record.num_choices
    record.is_generation, record.stream, record.max_tokens = True, params.stream, max_tokens
    record.num_choices += 1
    return Generation(
        # A client may send one X-Request-Id twice; the engine needs a name for each call.
        request_id=f"{record.request_id}-{uuid.uuid4().hex[:8]}-{position}",
        prompt_token_ids=prompt,
        max_tokens=max_tokens,
        sampling=params.sampling,
        seed_offset=seed_offset,
        stop_token_ids=params.stop_token_ids,
        ignore_eos=params.ignore_eos,
        min_tokens=params.min_tokens,
        num_top_logprobs=num_top_logprobs,
        num_top_prompt_logprobs=num_top_prompt_logprobs,
        draft=params.draft,
        is_background=params.is_background,
        grammar=grammar,
    )


def _note_begin(gateway: Gateway, record: RequestRecord) -> None:
    record.num_concurrent = gateway.metrics.num_inflight
    stats = gateway.monitor.stats
    if stats is not None:
        record.num_used_blocks = stats.gauges["num_blocks_used"]
        record.num_free_blocks = stats.gauges["num_blocks"] - stats.gauges["num_blocks_used"]


def end_token_ids(params: ReplyParams, model: EngineModel) -> frozenset[int]:
    """Give the ids that end the output and have no text."""
    return frozenset(params.stop_token_ids) | (frozenset() if params.ignore_eos else model.eos_token_ids)


def build_head(gateway: Gateway, model: EngineModel, prefix: str) -> ReplyHead:
    """Give what every object of a new reply carries."""
    return ReplyHead(
        id=f"{prefix}-{uuid.uuid4().hex}",
        created=int(time.time()),
        model=gateway.settings.served_name,
        system_fingerprint=model.fingerprint,
    )


async def respond(
    request: Request, fan_out: FanOut, run: Run, *, stream: bool, form: EventForm = OPENAI_EVENTS
) -> Response:
    """Start the choices and give the response. Raises ApiError while the status can still be chosen."""
    gateway, record = gateway_of(request), record_of(request)
    over = gateway.drain.over
    gateway.metrics.change_inflight(1)
    async with AsyncExitStack() as stack:
        stack.callback(gateway.metrics.change_inflight, -1)
        _note_begin(gateway, record)
        if gateway.history is not None:
            first = run.choices[0].generation.prompt_token_ids
            record.traits = await asyncio.to_thread(gateway.history.note, first)
        stack.callback(lambda: setattr(record, "usage", run.usage()))
        await stack.enter_async_context(fan_out)
        if not stream:
            return await run_while_connected(request.receive, run.whole(fan_out), over)
        admission = fan_out.wait_for_admission(gateway.settings.admission_wait_seconds)
        await run_while_connected(request.receive, admission, over)
        # From here on the event stream owns what is open.
        owned = stack.pop_all()

    def note_error(error: ApiError) -> None:
        record.error = error

    return EventStream(run.chunks(fan_out), owned, gateway.settings.sse_keepalive_seconds, note_error, over, form)
