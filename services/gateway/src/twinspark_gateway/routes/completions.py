"""POST /v1/completions."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from twinspark_gateway.gateway import Gateway, fit_max_tokens, gateway_of
from twinspark_gateway.generation import EngineModel, TokenLogprob
from twinspark_gateway.reply.choice import Choice, Delta, Ended, PromptScored
from twinspark_gateway.reply.fan_out import FanOut
from twinspark_gateway.reply.text_reader import CompletionReader
from twinspark_gateway.reply.usage import Usage, sum_usage
from twinspark_gateway.request_record import RequestRecord, record_of
from twinspark_gateway.routes.constraints import Held, compile_constraint
from twinspark_gateway.routes.generations import build_generation, build_head, end_token_ids, respond
from twinspark_gateway.schemas.chat_reply import ChoiceTotal
from twinspark_gateway.schemas.completion_reply import CompletionReply, EchoedPrompt, echo_prompt
from twinspark_gateway.schemas.completion_request import (
    DEFAULT_MAX_TOKENS,
    CompletionRequest,
    Prompt,
    read_completion_request,
)

router = APIRouter()


@router.post("/v1/completions")
@router.post("/completions")
async def completions(request: Request) -> Response:
    """Continue one or several prompts, streamed or whole."""
    gateway = gateway_of(request)
    body = await gateway.read_body(request)
    gateway.check_model(body)
    model = gateway.monitor.serving_model()
    completion = read_completion_request(body, model, gateway.defaults)
    if completion.params.stop:
        gateway.require_tokenizer("stop", "stop strings cannot be found")
    prompts = [await _encode(gateway, prompt, completion.add_special_tokens) for prompt in completion.prompts]
    record = record_of(request)
    held = await compile_constraint(gateway, completion.constraint, starts_after_thinking=False)
    run = CompletionRun(
        reply=CompletionReply(
            head=build_head(gateway, model, "cmpl"),
            names=gateway.names,
            with_logprobs=completion.num_top_logprobs is not None,
            with_token_ids=completion.params.return_token_ids,
            with_usage=completion.params.continuous_usage,
        ),
        choices=_build_choices(gateway, record, completion, model, prompts, held),
        num_choices_each=completion.params.num_choices,
        echoes=[_echo(gateway, prompt) for prompt in prompts] if completion.echo else None,
        include_usage=completion.params.include_usage,
        record=record,
    )
    fan_out = FanOut(gateway.engine, run.choices, model.num_slots, held.check)
    return await respond(request, fan_out, run, stream=completion.params.stream)


@dataclass(frozen=True, slots=True)
class CompletionRun:
    """One running completion request; choice i belongs to prompt i // num_choices_each."""

    reply: CompletionReply
    choices: Sequence[Choice]
    num_choices_each: int
    # One for each prompt; None without echo.
    echoes: Sequence[EchoedPrompt] | None
    include_usage: bool
    record: RequestRecord
    _prompt_logprobs: dict[int, Sequence[TokenLogprob | None]] = field(default_factory=dict)

    async def chunks(self, fan_out: FanOut) -> AsyncGenerator[dict[str, Any], None]:
        """Give the chunks of the stream."""
        if self.echoes is not None and not self.reply.with_logprobs:
            for choice in self.choices:
                yield self.reply.echo_chunk(choice.index, self._echo_of(choice.index), ())
        async for message in fan_out.messages():
            if isinstance(message, PromptScored):
                yield self.reply.echo_chunk(message.index, self._echo_of(message.index), message.logprobs)
            elif isinstance(message, Delta):
                self.record.note_token()
                chunk = self.reply.delta_chunk(message, self._text_start(message.index))
                if chunk is not None:
                    yield chunk
            elif isinstance(message, Ended):
                self.record.note_end(message)
                yield self.reply.finish_chunk(message)
        if self.include_usage:
            yield self.reply.usage_chunk(self.usage())

    async def whole(self, fan_out: FanOut) -> Response:
        """Give the reply when every choice has ended."""
        totals = [ChoiceTotal() for _ in self.choices]
        async for message in fan_out.messages():
            if isinstance(message, PromptScored):
                self._prompt_logprobs[message.index] = message.logprobs
            elif isinstance(message, Delta):
                self.record.note_token()
                totals[message.index].add(message)
            elif isinstance(message, Ended):
                self.record.note_end(message)
                totals[message.index].ended = message
        choices = [self._whole_choice(index, total) for index, total in enumerate(totals)]
        return JSONResponse(self.reply.whole(choices, self.usage()))

    def usage(self) -> Usage:
        """Give the counts so far."""
        each = self.num_choices_each
        groups = [self.choices[start : start + each] for start in range(0, len(self.choices), each)]
        return sum_usage([[choice.usage for choice in group] for group in groups])

    def _whole_choice(self, index: int, total: ChoiceTotal) -> dict[str, Any]:
        echo = self._echo_of(index) if self.echoes is not None else None
        return self.reply.whole_choice(index, total, echo, self._prompt_logprobs.get(index, ()))

    def _echo_of(self, index: int) -> EchoedPrompt:
        assert self.echoes is not None
        return self.echoes[index // self.num_choices_each]

    def _text_start(self, index: int) -> int:
        return len(self._echo_of(index).text) if self.echoes is not None else 0


async def _encode(gateway: Gateway, prompt: Prompt, add_special_tokens: bool) -> Sequence[int]:
    if not isinstance(prompt, str):
        return prompt
    tokenizer = gateway.require_tokenizer("prompt", "a text prompt cannot be read")
    return await asyncio.to_thread(tokenizer.encode, prompt, add_special_tokens=add_special_tokens)


def _echo(gateway: Gateway, prompt: Sequence[int]) -> EchoedPrompt:
    return echo_prompt(prompt, gateway.names, has_text=gateway.tokenizer is not None)


def _build_choices(
    gateway: Gateway,
    record: RequestRecord,
    completion: CompletionRequest,
    model: EngineModel,
    prompts: Sequence[Sequence[int]],
    held: Held,
) -> list[Choice]:
    params = completion.params
    limits = [fit_max_tokens(model, prompt, completion.max_tokens, DEFAULT_MAX_TOKENS, "prompt") for prompt in prompts]
    return [
        Choice(
            index=position * params.num_choices + index,
            generation=build_generation(
                record,
                params,
                prompt,
                max_tokens=limit,
                seed_offset=index,
                num_top_logprobs=completion.num_top_logprobs,
                num_top_prompt_logprobs=completion.num_top_logprobs if completion.echo else None,
                grammar=held.grammar,
            ),
            reader=CompletionReader(gateway.tokenizer, params.stop, skip_special_tokens=params.skip_special_tokens),
            end_token_ids=end_token_ids(params, model),
        )
        for position, (prompt, limit) in enumerate(zip(prompts, limits, strict=True))
        for index in range(params.num_choices)
    ]
