"""What every API of conversations shares: from a chat request to a running reply.

An API translates its request to the body of a chat request, and the messages of the reply to its own objects
(ChatFormat); everything between is here, so that a rule of chat is one of every API.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from fastapi import Request
from starlette.responses import JSONResponse, Response

from twinspark_gateway.gateway import fit_max_tokens, gateway_of
from twinspark_gateway.generation import EngineModel
from twinspark_gateway.prompt.reasoning import ReasoningSplitter
from twinspark_gateway.prompt.reasoning_memory import ReasoningMemory
from twinspark_gateway.prompt.template import Conversation, render_prompt
from twinspark_gateway.prompt.tokenizer import Tokenizer
from twinspark_gateway.reply.chat_reader import ChatReader
from twinspark_gateway.reply.choice import Choice, Delta, Ended, Message, Started
from twinspark_gateway.reply.fan_out import FanOut
from twinspark_gateway.reply.thinking_budget import build_budget
from twinspark_gateway.reply.usage import Usage, sum_usage
from twinspark_gateway.request_record import RequestRecord, record_of
from twinspark_gateway.routes.constraints import Held, compile_constraint
from twinspark_gateway.routes.generations import build_generation, end_token_ids, respond
from twinspark_gateway.schemas.chat_reply import ChoiceTotal, describe_call
from twinspark_gateway.schemas.chat_request import ChatRequest, read_chat_request
from twinspark_gateway.schemas.conversation import read_conversation
from twinspark_gateway.schemas.fields import Fields, refuse_at
from twinspark_gateway.schemas.later_fields import CHAT, check_later_fields
from twinspark_gateway.schemas.messages import read_tool_call
from twinspark_gateway.schemas.thinking import read_thinking
from twinspark_gateway.tools.offer import ToolOffer
from twinspark_gateway.web.event_stream import OPENAI_EVENTS, EventForm


class ChatFormat(Protocol):
    """How one API writes a reply. Every method but `whole` gives the chunks of the stream that are due then."""

    def opening_chunks(self, prompt_token_ids: Sequence[int]) -> list[dict[str, Any]]:
        """Begin the stream; the engine may not have spoken yet."""
        ...

    def started_chunks(self, started: Started) -> list[dict[str, Any]]:
        """Begin a choice: the engine gave it its slot."""
        ...

    def delta_chunks(self, delta: Delta) -> list[dict[str, Any]]:
        """Go on with a choice."""
        ...

    def end_chunks(self, ended: Ended) -> list[dict[str, Any]]:
        """End a choice."""
        ...

    def closing_chunks(self, usage: Usage) -> list[dict[str, Any]]:
        """End the stream: every choice has ended."""
        ...

    def whole(self, totals: Sequence[ChoiceTotal], usage: Usage, prompt_token_ids: Sequence[int]) -> dict[str, Any]:
        """Give the reply that is not streamed."""
        ...


@dataclass(frozen=True, slots=True)
class PreparedChat:
    """A checked request whose prompt is rendered and fits."""

    chat: ChatRequest
    model: EngineModel
    prompt: Sequence[int]
    choices: Sequence[Choice]
    record: RequestRecord
    memory: "ScopedMemory"
    held: Held


async def prepare_chat(request: Request, body: Mapping[str, Any]) -> PreparedChat:
    """Check the body of a chat request and render its prompt. Raises ApiError."""
    gateway = gateway_of(request)
    model = gateway.monitor.serving_model()
    chat = read_chat_request(body, model, gateway.defaults, gateway.thinking_defaults)
    tokenizer = gateway.require_tokenizer("messages", "chat is not available")
    record = record_of(request)
    scope = record.key_label or ""
    conversation, record.restored_turns = gateway.memory.restore(scope, chat.conversation)
    prompt = await asyncio.to_thread(render_prompt, conversation, tokenizer)
    default = gateway.settings.default_max_tokens or None
    max_tokens = fit_max_tokens(model, prompt, chat.max_tokens, default, "messages")
    record.thinking, record.effort = conversation.enable_thinking, conversation.reasoning_effort
    record.thinking_budget = chat.thinking_budget or None
    is_thinking = _starts_thinking(tokenizer, prompt)
    if is_thinking and chat.constraint is not None:
        _check_stop_ids(chat, tokenizer)
    held = await compile_constraint(gateway, chat.constraint, starts_after_thinking=is_thinking)
    choices = _build_choices(record, chat, model, tokenizer, prompt, max_tokens, held)
    scoped = ScopedMemory(gateway.memory, scope, conversation)
    return PreparedChat(chat, model, prompt, choices, record, scoped, held)


def _starts_thinking(tokenizer: Tokenizer, prompt: Sequence[int]) -> bool:
    """Say whether the reply begins inside its reasoning."""
    return ReasoningSplitter(tokenizer.think_tokens(), prompt).is_inside


def _check_stop_ids(chat: ChatRequest, tokenizer: Tokenizer) -> None:
    tokens = tokenizer.think_tokens()
    if tokens is not None and tokens.closing in chat.params.stop_token_ids:
        why = "the constraint of the answer begins after it"
        raise refuse_at("stop_token_ids", f"must not hold the id that ends the reasoning: {why}")


async def encode_conversation(request: Request, body: Mapping[str, Any]) -> list[int]:
    """Give the prompt that the chat request would run; needs no engine. Raises ApiError."""
    gateway = gateway_of(request)
    tokenizer = gateway.require_tokenizer("messages", "text has no token ids")
    check_later_fields(body, CHAT)
    conversation = read_conversation(body, read_thinking(Fields(body), gateway.thinking_defaults))
    conversation, _ = gateway.memory.restore(record_of(request).key_label or "", conversation)
    return await asyncio.to_thread(render_prompt, conversation, tokenizer)


async def answer_chat(
    request: Request, prepared: PreparedChat, reply: ChatFormat, form: EventForm = OPENAI_EVENTS
) -> Response:
    """Run a request and give the response. Raises ApiError while the status can still be chosen."""
    run = ChatRun(reply, prepared.choices, prepared.prompt, prepared.record, prepared.memory)
    fan_out = FanOut(gateway_of(request).engine, run.choices, prepared.model.num_slots, prepared.held.check)
    return await respond(request, fan_out, run, stream=prepared.chat.params.stream, form=form)


@dataclass(frozen=True, slots=True)
class ScopedMemory:
    """Where the reasoning of this request's replies is kept."""

    memory: ReasoningMemory
    scope: str
    conversation: Conversation

    def remember(self, total: ChoiceTotal) -> None:
        """Keep the reasoning of a reply that has ended, if it calls tools; not of one that holds a part of it only."""
        if total.calls and self.conversation.continued_field is None:
            calls = [read_tool_call(describe_call(call), "tool_calls") for call in total.calls]
            self.memory.remember(self.scope, self.conversation.messages, calls, total.reasoning)


@dataclass(frozen=True, slots=True)
class ChatRun:
    """One running chat request."""

    reply: ChatFormat
    choices: Sequence[Choice]
    prompt: Sequence[int]
    record: RequestRecord
    memory: ScopedMemory

    async def chunks(self, fan_out: FanOut) -> AsyncGenerator[dict[str, Any], None]:
        """Give the chunks of the stream in the order that clients rely on."""
        for chunk in self.reply.opening_chunks(self.prompt):
            yield chunk
        totals = [ChoiceTotal() for _ in self.choices]
        async for message in fan_out.messages():
            for chunk in self._take(totals, message):
                yield chunk
        for chunk in self.reply.closing_chunks(self.usage()):
            yield chunk

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

    def _take(self, totals: Sequence[ChoiceTotal], message: Message) -> list[dict[str, Any]]:
        if isinstance(message, Started):
            return self.reply.started_chunks(message)
        if isinstance(message, Delta):
            self.record.note_token()
            totals[message.index].add_turn(message)
            return self.reply.delta_chunks(message)
        if isinstance(message, Ended):
            self._take_end(totals, message)
            return self.reply.end_chunks(message)
        return []

    def _take_end(self, totals: Sequence[ChoiceTotal], ended: Ended) -> None:
        self.record.note_end(ended)
        totals[ended.index].ended = ended
        # Before the client can send its next request.
        self.memory.remember(totals[ended.index])

    def usage(self) -> Usage:
        """Give the counts so far."""
        return sum_usage([[choice.usage for choice in self.choices]])


def _build_choices(
    record: RequestRecord,
    chat: ChatRequest,
    model: EngineModel,
    tokenizer: Tokenizer,
    prompt: Sequence[int],
    max_tokens: int,
    held: Held,
) -> list[Choice]:
    params, budget = chat.params, build_budget(chat.thinking_budget, tokenizer)
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
                grammar=held.grammar,
            ),
            reader=ChatReader(
                tokenizer,
                prompt,
                params.stop,
                skip_special_tokens=params.skip_special_tokens,
                offer=ToolOffer() if chat.has_format else chat.conversation.offer,
                eos_token_ids=model.eos_token_ids,
                is_exact=chat.has_format,
            ),
            end_token_ids=end_token_ids(params, model),
            budget=budget,
        )
        for index in range(params.num_choices)
    ]
