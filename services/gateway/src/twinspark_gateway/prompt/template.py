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
# The same words at the beginning of a message are its own.
_TYPED_EFFORT = re.compile(r"\A\s*R(?=easoning Effort: )")
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
    # What of the last message the reply goes on with, instead of a message of its own: its content, or its
    # reasoning_content. None: nothing.
    continued_field: str | None = None
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
        texts = list(_strings([conversation.messages, definitions]))
        is_marked = any(_holds_markup(text, tokenizer.markup) for text in texts)
        mark, end = _free_marks(texts) if is_marked or conversation.continued_field else _MARKS[:2]
        messages, tools = _mark_end(conversation, end), definitions
        if is_marked:
            messages, tools = (_protect(part, mark, tokenizer.markup) for part in (messages, tools))
    except RecursionError as error:
        raise _rejected("it is nested too deeply") from error
    text = _render(template, conversation, messages, tools)
    if conversation.continued_field is not None:
        text, found, _ = text.rpartition(end)
        if not found:
            raise _rejected("it does not show the message that is to be continued")
    if not conversation.enable_thinking:
        text = _switch_thinking_off(text)
    if not is_marked:
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


def _free_marks(texts: Sequence[str]) -> tuple[str, str]:
    """Give two characters that no text holds."""
    free = [mark for mark in _MARKS if not any(mark in text for text in texts)]
    if len(free) < 2:
        raise invalid("messages", "The messages hold every Unicode noncharacter; such text cannot be rendered.")
    return free[0], free[1]


def _mark_end(conversation: Conversation, end: str) -> list[Any]:
    """Put a mark where the text ends that is to be continued, if any: a template trims around it."""
    *earlier, last = conversation.messages
    name = conversation.continued_field
    return [*earlier, last if name is None else {**last, name: last[name] + end}]


def _holds_markup(text: str, markup: re.Pattern[str] | None) -> bool:
    """Whether the text spells an added token, or begins as the template's effort line."""
    return _TYPED_EFFORT.match(text) is not None or (markup is not None and markup.search(text) is not None)


def _protect(value: Any, mark: str, markup: re.Pattern[str] | None) -> Any:
    """Put the mark inside all of that, in every string of a JSON value."""
    if isinstance(value, str):
        text = _TYPED_EFFORT.sub(lambda match: f"{match[0]}{mark}", value)
        return markup.sub(lambda match: f"{match[0][0]}{mark}{match[0][1:]}", text) if markup is not None else text
    if isinstance(value, Mapping):
        return {_protect(key, mark, markup): _protect(item, mark, markup) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_protect(item, mark, markup) for item in value]
    return value


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
