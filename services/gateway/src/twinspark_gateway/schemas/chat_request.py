"""The body of POST /v1/chat/completions (and of /tokenize with messages)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from twinspark_gateway.constraint import Constraint
from twinspark_gateway.errors import invalid
from twinspark_gateway.generation import EngineModel
from twinspark_gateway.prompt.template import Conversation
from twinspark_gateway.schemas.conversation import read_conversation
from twinspark_gateway.schemas.fields import Fields
from twinspark_gateway.schemas.formats import check_beside, read_format
from twinspark_gateway.schemas.later_fields import CHAT, check_later_fields
from twinspark_gateway.schemas.sampling import ReplyParams, read_reply_params
from twinspark_gateway.schemas.sampling_defaults import SamplingDefaults
from twinspark_gateway.schemas.thinking import ThinkingDefaults, read_thinking
from twinspark_gateway.schemas.tool_grammar import tool_constraint
from twinspark_gateway.tools.offer import ToolChoice, ToolOffer

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
    # What the answer must be; None: any text, and any calls where tools are offered.
    constraint: Constraint | None
    # Whether the constraint is a format: then the answer is one value, and no call is looked for.
    has_format: bool


def read_chat_request(
    body: Mapping[str, Any], model: EngineModel, defaults: SamplingDefaults, thinking_defaults: ThinkingDefaults
) -> ChatRequest:
    """Read and check a body. Raises ApiError."""
    fields = Fields(body)
    check_later_fields(body, CHAT)
    max_tokens = fields.integer("max_tokens", 1)
    max_completion_tokens = fields.integer("max_completion_tokens", 1)
    thinking = read_thinking(fields, thinking_defaults)
    conversation = read_conversation(body, thinking)
    params = read_reply_params(fields, model, defaults)
    wanted = read_format(fields)
    constraint = _choose(wanted, conversation.offer)
    check_beside(params, constraint)
    return ChatRequest(
        conversation=conversation,
        params=params,
        max_tokens=max_tokens if max_completion_tokens is None else max_completion_tokens,
        num_top_logprobs=_read_logprobs(fields, model),
        include_reasoning=fields.boolean("include_reasoning", True),
        thinking_budget=thinking.budget,
        constraint=constraint,
        has_format=wanted is not None,
    )


def _choose(wanted: Constraint | None, offer: ToolOffer) -> Constraint | None:
    """Give the constraint of the answer: a format excludes calls, so it goes with no choice that asks for one."""
    if wanted is None:
        return tool_constraint(offer)
    if offer.choice is not ToolChoice.AUTO:
        field = wanted.where.split(".")[0]
        message = f"'{field}' must not stand beside a 'tool_choice' that asks for a call."
        raise invalid(field, message, code="invalid_value")
    return wanted


def _read_logprobs(fields: Fields, model: EngineModel) -> int | None:
    wanted = fields.boolean("logprobs", False)
    count = fields.integer("top_logprobs", 0, min(MAX_TOP_LOGPROBS, model.max_top_logprobs))
    if count and not wanted:
        raise invalid("top_logprobs", "'top_logprobs' needs 'logprobs': true.", code="invalid_value")
    return (count or 0) if wanted else None
