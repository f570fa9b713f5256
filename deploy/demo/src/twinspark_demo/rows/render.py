"""Rendering: the text of a conversation, in segments that say how the loss weighs them.

The text is what `chat_template.jinja` gives, and then the marker that ends the last reply; a test compares the two.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from twinspark_demo.conversation import Conversation
from twinspark_demo.row_batch import TokenClass

Message = Mapping[str, Any]
Segment = tuple[str, TokenClass]

_TOOLS_HEAD = (
    "<|system|>\n# Tools\n\nFunctions that you may call to help the user, as JSON, one on each line:\n<tools>\n"
)
_TOOLS_TAIL = (
    "</tools>\n\nWrite each call in this form:\n"
    "<tool_call>name<arg_key>key</arg_key><arg_value>value</arg_value></tool_call>"
)
_EFFORTS = {"low": "Low", "high": "High"}


def render(conversation: Conversation) -> list[Segment]:
    """The document's text, cut where the class changes; each cut is beside a special token.

    Raises ValueError for what no chat has: a last message that is not the assistant's, a reply with calls that a tool
    does not answer, results in another order than their calls.
    """
    segments = _Segments()
    segments.add(_preamble(conversation), TokenClass.PROMPT)
    others = TokenClass.PROMPT if conversation.learns_prompt else TokenClass.SILENT
    end: str | None = None  # the marker that ends the reply before this message
    calls: Sequence[Message] = ()
    for message, results in _turns(conversation.messages):
        marker = "<|observation|>" if results else f"<|{message['role']}|>"
        if end is not None and marker != end:
            raise ValueError(f"a reply that ends with {end} before {marker}")
        segments.add(marker, TokenClass.PROMPT if end is None else TokenClass.ANSWER)
        end = None
        if results:
            _check_order(results, calls)
            for result in results:
                segments.add("<tool_response>", TokenClass.PROMPT)
                segments.add(result["content"], others)
                segments.add("</tool_response>", TokenClass.PROMPT)
        elif message["role"] == "assistant":
            calls = message.get("tool_calls") or ()
            segments.add_reply(message, calls, conversation.enable_thinking)
            end = "<|observation|>" if calls else "<|user|>"
        else:
            segments.add(message["content"], others)
    if end is None:
        raise ValueError("the last message is not the assistant's")
    segments.add(end, TokenClass.ANSWER)
    return segments.found


def rendered_text(conversation: Conversation) -> str:
    """The whole text of the document, with the marker that ends the last reply."""
    return "".join(text for text, _ in render(conversation))


class _Segments:
    """Segments so far; neighbours of one class become one."""

    def __init__(self) -> None:
        self.found: list[Segment] = []

    def add(self, text: str, token_class: TokenClass) -> None:
        if self.found and self.found[-1][1] is token_class:
            text = self.found.pop()[0] + text
        if text:
            self.found.append((text, token_class))

    def add_reply(self, message: Message, calls: Sequence[Message], thinks: bool) -> None:
        """What follows the assistant's marker. The opener that the prompt ends with is not the assistant's."""
        reasoning = message["reasoning_content"].strip()
        if reasoning and not thinks:
            raise ValueError("reasoning in a conversation without thinking")
        self.add("<think>" if thinks else "<think></think>", TokenClass.PROMPT)
        learned = TokenClass.SILENT if message.get("is_context") else TokenClass.ANSWER
        said = (message["content"] or "").strip() + "".join(map(_call_text, calls))
        self.add(f"{reasoning}</think>{said}" if thinks else said, learned)


def _preamble(conversation: Conversation) -> str:
    text = "[gMASK]<sop>"
    if conversation.enable_thinking:
        text += "<|system|>Reasoning Effort: " + _EFFORTS.get(conversation.reasoning_effort or "", "Max")
    if conversation.tools:
        lines = (json.dumps(tool["function"], ensure_ascii=False) + "\n" for tool in conversation.tools)
        text += _TOOLS_HEAD + "".join(lines) + _TOOLS_TAIL
    return text


def _turns(messages: Sequence[Message]) -> list[tuple[Message, list[Message]]]:
    """Each message that opens a turn, with the run of results if it is a tool's."""
    turns: list[tuple[Message, list[Message]]] = []
    for message in messages:
        if message["role"] != "tool":
            turns.append((message, []))
        elif turns and turns[-1][1]:
            turns[-1][1].append(message)
        else:
            turns.append((message, [message]))
    return turns


def _check_order(results: Sequence[Message], calls: Sequence[Message]) -> None:
    if [result["tool_call_id"] for result in results] != [call["id"] for call in calls]:
        raise ValueError("the results are not in the order of the calls")


def _call_text(call: Message) -> str:
    function = call["function"]
    arguments = "".join(
        f"<arg_key>{key}</arg_key><arg_value>"
        f"{value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}</arg_value>"
        for key, value in function["arguments"].items()
    )
    return f"<tool_call>{function['name']}{arguments}</tool_call>"
