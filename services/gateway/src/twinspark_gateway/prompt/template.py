"""Renders a conversation with the checkpoint's own chat template, in Transformers' sandbox, and encodes it.

Text of the conversation that spells a token of the template (typed `<|user|>`, `</think>`, ...) stays text: before
rendering a mark is put inside each such spelling, and what is still marked afterwards is encoded without added tokens.
A conversation without such text is encoded as one string, exactly as any Hugging Face tokenizer would.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jinja2
from transformers.utils.chat_template_utils import render_jinja_template

from twinspark_gateway.errors import ApiError, invalid
from twinspark_gateway.prompt.tokenizer import Tokenizer
from twinspark_gateway.tools.offer import ToolOffer

# Unicode's noncharacters: they are valid in a string and no text has a use for them.
_MARKS = tuple(map(chr, range(0xFDD0, 0xFDF0)))
# Templates of the checkpoint know no switch for thinking; these are the two places where "off" differs.
_EFFORT_LINE = re.compile(r"\A(\[gMASK\]<sop>)?<\|system\|>Reasoning Effort: \w+(?=<\||\Z)")
RESERVED_KWARGS = frozenset(
    {
        "add_generation_prompt",
        "chat_template",
        "continue_final_message",
        "conversations",
        "documents",
        "messages",
        "return_assistant_tokens_mask",
        "tools",
    }
)


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a chat prompt is rendered from."""

    # Normalised messages: string contents, arguments as objects.
    messages: Sequence[Mapping[str, Any]]
    offer: ToolOffer = field(default_factory=ToolOffer)
    enable_thinking: bool = True
    # low, high or max; None leaves it to the template.
    reasoning_effort: str | None = None
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    # Other variables of the template.
    kwargs: Mapping[str, Any] = field(default_factory=dict)


def render_prompt(conversation: Conversation, tokenizer: Tokenizer) -> list[int]:
    """Give the prompt token ids of a conversation. A pure function; slow for long texts, so call it in a thread.

    Raises a 400 if there is no template or if the template refuses.
    """
    template = tokenizer.chat_template
    if template is None:
        raise invalid(
            "messages",
            "The checkpoint has no chat template (chat_template.jinja or tokenizer_config.json), so chat is not "
            "available; /v1/completions is.",
            code="no_chat_template",
        )
    definitions = [tool.definition for tool in conversation.offer.tools]
    if definitions and (tokenizer.tool_tags() is None or "tools" not in template):
        raise invalid("tools", "The checkpoint's tokenizer or chat template knows no tools.", code="no_tools")
    try:
        mark, (messages, tools) = _protect([conversation.messages, definitions], tokenizer.markup)
    except RecursionError as error:
        raise _rejected("it is nested too deeply") from error
    text = _render(template, conversation, messages, tools)
    if not conversation.enable_thinking:
        text = _switch_thinking_off(text)
    if mark is None:
        return tokenizer.encode(text)
    return tokenizer.encode_segments(_segments(text, mark, tokenizer.markup))


def _render(template: str, conversation: Conversation, messages: list[Any], tools: list[Any]) -> str:
    effort = conversation.reasoning_effort
    variables = dict(conversation.kwargs) | {"enable_thinking": conversation.enable_thinking}
    if effort is not None:
        variables["reasoning_effort"] = effort
    try:
        rendered, _ = render_jinja_template(
            [messages],
            tools=tools or None,
            chat_template=template,
            add_generation_prompt=conversation.add_generation_prompt,
            continue_final_message=conversation.continue_final_message,
            **variables,
        )
    except jinja2.TemplateError as error:
        raise _rejected(error.message or type(error).__name__) from error
    except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError) as error:
        # Their texts may quote the conversation at length.
        raise _rejected(f"{type(error).__name__} while rendering") from error
    return str(rendered[0])


def _rejected(why: str) -> ApiError:
    return invalid("messages", f"the chat template rejected the request: {why}")


def _switch_thinking_off(text: str) -> str:
    """Drop the effort line and close the reasoning at once, where the template itself does not."""
    text = _EFFORT_LINE.sub(lambda match: match[1] or "", text, count=1)
    return f"{text}</think>" if text.endswith("<think>") else text


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key)
            yield from _strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)


def _protect(parts: Sequence[Any], markup: re.Pattern[str] | None) -> tuple[str | None, list[list[Any]]]:
    """Put a mark inside every spelling of an added token; give the mark, None if nothing had to be marked."""
    texts = list(_strings(parts))
    if markup is None or not any(markup.search(text) for text in texts):
        return None, [list(part) for part in parts]
    mark = next((mark for mark in _MARKS if not any(mark in text for text in texts)), None)
    if mark is None:
        raise invalid("messages", "The messages hold every Unicode noncharacter; such text cannot be rendered.")

    def protect(value: Any) -> Any:
        if isinstance(value, str):
            return markup.sub(lambda match: f"{match[0][0]}{mark}{match[0][1:]}", value)
        if isinstance(value, Mapping):
            return {protect(key): protect(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [protect(item) for item in value]
        return value

    return mark, [protect(part) for part in parts]


def _segments(text: str, mark: str, markup: re.Pattern[str] | None) -> Iterator[tuple[str, bool]]:
    """Cut the rendered text at the template's own tokens, then take the marks out of what lies between."""
    start = 0
    for match in markup.finditer(text) if markup is not None else ():
        if match.start() > start:
            yield text[start : match.start()].replace(mark, ""), False
        yield match[0], True
        start = match.end()
    if start < len(text):
        yield text[start:].replace(mark, ""), False
