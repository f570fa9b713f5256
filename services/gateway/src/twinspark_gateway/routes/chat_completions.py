"""POST /v1/chat/completions."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from twinspark_gateway.gateway import Gateway, fit_max_tokens, gateway_of
from twinspark_gateway.generation import EngineModel
from twinspark_gateway.prompt.reasoning_memory import ReasoningMemory
from twinspark_gateway.prompt.template import Conversation, render_prompt
from twinspark_gateway.prompt.tokenizer import Tokenizer
from twinspark_gateway.reply.chat_reader import ChatReader
from twinspark_gateway.reply.choice import Choice, Delta, Ended
from twinspark_gateway.reply.fan_out import FanOut
from twinspark_gateway.reply.usage import Usage, sum_usage
from twinspark_gateway.request_record import RequestRecord, record_of
from twinspark_gateway.routes.generations import build_generation, build_head, end_token_ids, respond
from twinspark_gateway.schemas.chat_reply import ChatReply, ChoiceTotal, describe_call
from twinspark_gateway.schemas.chat_request import ChatRequest, read_chat_request
from twinspark_gateway.schemas.messages import read_tool_call

router = APIRouter()
_REASONING_FIELDS = {"both": ("reasoning_content", "reasoning")}


@router.post("/v1/chat/completions")
@router.post("/chat/completions")
async def chat_completions(request: Request) -> Response:
    """Answer a conversation, streamed or whole."""
    gateway = gateway_of(request)
    body = await gateway.read_body(request)
    gateway.check_model(body)
    model = gateway.monitor.serving_model()
    chat = read_chat_request(body, model, gateway.defaults, gateway.settings.reasoning_effort)
    tokenizer = gateway.require_tokenizer("messages", "chat is not available")
    record = record_of(request)
    scope = record.key_label or ""
    conversation, record.restored_turns = gateway.memory.restore(scope, chat.conversation)
    prompt = await asyncio.to_thread(render_prompt, conversation, tokenizer)
    default = gateway.settings.default_max_tokens or None
    max_tokens = fit_max_tokens(model, prompt, chat.max_tokens, default, "messages")
    record.thinking = conversation.enable_thinking
    run = ChatRun(
        reply=_build_reply(gateway, chat, model, record.restored_turns),
        choices=_build_choices(record, chat, model, tokenizer, prompt, max_tokens),
        prompt=prompt,
        include_usage=chat.params.include_usage,
        record=record,
        memory=ScopedMemory(gateway.memory, scope, conversation),
    )
    fan_out = FanOut(gateway.engine, run.choices, model.num_slots)
    return await respond(request, fan_out, run, stream=chat.params.stream)


@dataclass(frozen=True, slots=True)
class ScopedMemory:
    """Where the reasoning of this request's replies is kept."""

    memory: ReasoningMemory
    scope: str
    conversation: Conversation

    def remember(self, total: ChoiceTotal) -> None:
        """Keep the reasoning of a reply that has ended, if it calls tools."""
        if total.calls:
            calls = [read_tool_call(describe_call(call), "tool_calls") for call in total.calls]
            self.memory.remember(self.scope, self.conversation.messages, calls, total.reasoning)


@dataclass(frozen=True, slots=True)
class ChatRun:
    """One running chat request."""

    reply: ChatReply
    choices: Sequence[Choice]
    prompt: Sequence[int]
    include_usage: bool
    record: RequestRecord
    memory: ScopedMemory

    async def chunks(self, fan_out: FanOut) -> AsyncGenerator[dict[str, Any], None]:
        """Give the chunks of the stream in the order that clients rely on."""
        for choice in self.choices:
            yield self.reply.role_chunk(choice.index, self.prompt)
        totals = [ChoiceTotal() for _ in self.choices]
        async for message in fan_out.messages():
            if isinstance(message, Delta):
                self.record.note_token()
                totals[message.index].add_turn(message)
                for chunk in self.reply.delta_chunks(message):
                    yield chunk
            elif isinstance(message, Ended):
                self._take_end(totals, message)
                yield self.reply.finish_chunk(message)
        if self.include_usage:
            yield self.reply.usage_chunk(self.usage())

    async def whole(self, fan_out: FanOut) -> Response:
        """Give the reply when every choice has ended."""
        totals = [ChoiceTotal() for _ in self.choices]
        async for message in fan_out.messages():
            if isinstance(message, Delta):
                self.record.note_token()
                totals[message.index].add(message)
            elif isinstance(message, Ended):
                self._take_end(totals, message)
        return JSONResponse(self.reply.whole(totals, self.usage(), self.prompt))

    def _take_end(self, totals: Sequence[ChoiceTotal], ended: Ended) -> None:
        self.record.note_end(ended)
        totals[ended.index].ended = ended
        # Before the client can send its next request.
        self.memory.remember(totals[ended.index])

    def usage(self) -> Usage:
        """Give the counts so far."""
        return sum_usage([[choice.usage for choice in self.choices]])


def _build_reply(gateway: Gateway, chat: ChatRequest, model: EngineModel, restored_turns: int) -> ChatReply:
    name = gateway.settings.reasoning_field
    return ChatReply(
        head=build_head(gateway, model, "chatcmpl"),
        names=gateway.names,
        reasoning_fields=_REASONING_FIELDS.get(name, (name,)) if chat.include_reasoning else (),
        with_logprobs=chat.num_top_logprobs is not None,
        with_token_ids=chat.params.return_token_ids,
        with_usage=chat.params.continuous_usage,
        restored_turns=restored_turns,
    )


def _build_choices(
    record: RequestRecord,
    chat: ChatRequest,
    model: EngineModel,
    tokenizer: Tokenizer,
    prompt: Sequence[int],
    max_tokens: int,
) -> list[Choice]:
    params = chat.params
    return [
        Choice(
            index=index,
            generation=build_generation(
                record,
                params,
                prompt,
                max_tokens=max_tokens,
                seed_offset=index,
                num_top_logprobs=chat.num_top_logprobs,
            ),
            reader=ChatReader(
                tokenizer,
                prompt,
                params.stop,
                skip_special_tokens=params.skip_special_tokens,
                offer=chat.conversation.offer,
                eos_token_ids=model.eos_token_ids,
            ),
            end_token_ids=end_token_ids(params, model),
        )
        for index in range(params.num_choices)
    ]
