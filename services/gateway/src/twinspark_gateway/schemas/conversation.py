"""The fields of a chat request that make its prompt; /tokenize reads them too."""

from collections.abc import Mapping
from typing import Any

from twinspark_gateway.errors import invalid
from twinspark_gateway.prompt.template import Conversation
from twinspark_gateway.schemas.fields import Fields
from twinspark_gateway.schemas.legacy_functions import read_any_tool_offer
from twinspark_gateway.schemas.messages import read_messages
from twinspark_gateway.schemas.thinking import Thinking


def read_conversation(body: Mapping[str, Any], thinking: Thinking) -> Conversation:
    """Read them. Raises ApiError."""
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
        offer=read_any_tool_offer(fields),
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
