"""The body of POST /v1/chat/completions (and of /tokenize with messages)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from twinspark_gateway.errors import invalid
from twinspark_gateway.generation import EngineModel
from twinspark_gateway.prompt.template import Conversation
from twinspark_gateway.schemas.fields import Fields
from twinspark_gateway.schemas.later_fields import CHAT, check_later_fields
from twinspark_gateway.schemas.messages import read_messages
from twinspark_gateway.schemas.sampling import ReplyParams, read_reply_params
from twinspark_gateway.schemas.sampling_defaults import SamplingDefaults
from twinspark_gateway.schemas.thinking import Thinking, ThinkingDefaults, read_thinking
from twinspark_gateway.schemas.tools import read_tool_offer

MAX_TOP_LOGPROBS = 20


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A checked chat request."""

    conversation: Conversation
    params: ReplyParams
    # The limit that was given; None: what the context leaves.
    max_tokens: int | None
    # Alternatives beside each token's own log probability; None: none were asked for.
    num_top_logprobs: int | None
    include_reasoning: bool
    # As in Thinking.
    thinking_budget: int


def read_conversation(body: Mapping[str, Any], defaults: ThinkingDefaults) -> Conversation:
    """Read the fields that make the prompt. Raises ApiError."""
    return _build_conversation(body, read_thinking(Fields(body), defaults))


def _build_conversation(body: Mapping[str, Any], thinking: Thinking) -> Conversation:
    fields = Fields(body)
    messages = read_messages(body.get("messages"))
    continues = fields.boolean("continue_final_message", False)
    opens = fields.boolean("add_generation_prompt", not continues)
    if continues and opens:
        message = "'continue_final_message' and 'add_generation_prompt' must not both be true."
        raise invalid("continue_final_message", message, code="invalid_value")
    continued_field = _read_continued(messages, body["messages"][-1], thinking) if continues else None
    return Conversation(
        messages=messages,
        offer=read_tool_offer(fields),
        enable_thinking=thinking.enabled,
        reasoning_effort=thinking.effort,
        add_generation_prompt=opens,
        continued_field=continued_field,
        kwargs=thinking.template_kwargs,
    )


def _read_continued(messages: list[dict[str, Any]], given: Mapping[str, Any], thinking: Thinking) -> str:
    """Say what of the last message, which was given so, goes on: its reasoning where that is open, else its answer.

    It is open while thinking is on and nothing follows it. A think block that the answer does not close is one too.
    """
    last = messages[-1]
    if last["role"] != "assistant" or "tool_calls" in last:
        text = "'continue_final_message' needs an assistant message without tool calls at the end of 'messages'."
        raise invalid("continue_final_message", text, code="invalid_value")
    before, opening, inside = last["content"].partition("<think>")
    if opening and not before.strip() and not last.get("reasoning_content"):
        last = messages[-1] = {**last, "content": "", "reasoning_content": inside.removeprefix("\n")}
    is_open = thinking.enabled and bool(last.get("reasoning_content")) and not last["content"]
    return "reasoning_content" if is_open and "</think>" not in str(given.get("content")) else "content"


def read_chat_request(
    body: Mapping[str, Any], model: EngineModel, defaults: SamplingDefaults, thinking_defaults: ThinkingDefaults
) -> ChatRequest:
    """Read and check a body. Raises ApiError."""
    fields = Fields(body)
    check_later_fields(body, CHAT)
    max_tokens = fields.integer("max_tokens", 1)
    max_completion_tokens = fields.integer("max_completion_tokens", 1)
    thinking = read_thinking(fields, thinking_defaults)
    return ChatRequest(
        conversation=_build_conversation(body, thinking),
        params=read_reply_params(fields, model, defaults),
        max_tokens=max_tokens if max_completion_tokens is None else max_completion_tokens,
        num_top_logprobs=_read_logprobs(fields, model),
        include_reasoning=fields.boolean("include_reasoning", True),
        thinking_budget=thinking.budget,
    )


def _read_logprobs(fields: Fields, model: EngineModel) -> int | None:
    wanted = fields.boolean("logprobs", False)
    count = fields.integer("top_logprobs", 0, min(MAX_TOP_LOGPROBS, model.max_top_logprobs))
    if count and not wanted:
        raise invalid("top_logprobs", "'top_logprobs' needs 'logprobs': true.", code="invalid_value")
    return (count or 0) if wanted else None
