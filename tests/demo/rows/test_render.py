"""Rendering: the text that Transformers makes with the chat template, and who said which part of it."""

from importlib import resources
from itertools import islice
from typing import Any

import pytest
from transformers.utils.chat_template_utils import render_jinja_template

from twinspark_demo.conversation import Conversation
from twinspark_demo.documents.mixture import KINDS, MIXTURES, conversations
from twinspark_demo.knowledge import FUNCTIONS
from twinspark_demo.row_batch import TokenClass
from twinspark_demo.rows.render import render, rendered_text

SILENT, PROMPT, ANSWER = TokenClass.SILENT, TokenClass.PROMPT, TokenClass.ANSWER
TOOL = FUNCTIONS[0].as_tool()
CALLS = [
    {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": {"x": "é '\"", "n": 2}}},
    {"id": "call_2", "type": "function", "function": {"name": "g", "arguments": {"l": ["é"], "o": {"a": None}}}},
]


TEMPLATE = resources.files("twinspark_tools.tiny_checkpoint").joinpath("chat_template.jinja").read_text("utf-8")


def by_template(conversation: Conversation) -> str:
    """The text that Transformers makes with the chat template, and the end of the last reply."""
    effort = {} if conversation.reasoning_effort is None else {"reasoning_effort": conversation.reasoning_effort}
    texts, _ = render_jinja_template(
        conversations=[list(conversation.messages)],
        tools=list(conversation.tools) or None,
        chat_template=TEMPLATE,
        enable_thinking=conversation.enable_thinking,
        **effort,
    )
    return str(texts[0]) + ("<|observation|>" if conversation.messages[-1].get("tool_calls") else "<|user|>")


def said(role: str, content: str, **fields: Any) -> dict[str, Any]:
    reasoning = {"reasoning_content": ""} if role == "assistant" else {}
    return {"role": role, "content": content, **reasoning, **fields}


LONG_TALK = (
    said("system", "Be brief."),
    said("user", " hi \n"),
    said("assistant", " hello ", reasoning_content=" greet\nback "),
    said("user", "call"),
    said("assistant", "", tool_calls=CALLS),
    said("tool", '{"a": 1}', tool_call_id="call_1"),
    said("tool", "é", tool_call_id="call_2"),
    said("assistant", "done"),
)


@pytest.mark.parametrize("mixture", MIXTURES)
def test_the_text_of_generated_documents_is_that_of_the_template(mixture: str) -> None:
    count = 400 if mixture == "long" else 2000
    for drawn in islice(conversations(7, MIXTURES[mixture], 1500), count):
        assert rendered_text(drawn) == by_template(drawn)


def test_every_kind_of_document_is_rendered_as_by_the_template() -> None:
    for kind in KINDS:
        drawn = list(islice(conversations(8, {kind: 1.0}, 1000), 60))
        assert {one.kind for one in drawn} == {kind}
        assert [rendered_text(one) for one in drawn] == [by_template(one) for one in drawn]


@pytest.mark.parametrize("effort", [None, "low", "high", "medium"])
@pytest.mark.parametrize("tools", [(), (TOOL,), (TOOL, {**TOOL, "function": {"name": "é", "parameters": {"z": [1]}}})])
def test_every_part_of_a_talk_is_rendered_as_by_the_template(effort: str | None, tools: tuple[Any, ...]) -> None:
    for messages in (LONG_TALK, LONG_TALK[:3], LONG_TALK[:5], LONG_TALK[1:3]):
        conversation = Conversation("test", messages, tools, reasoning_effort=effort)
        assert rendered_text(conversation) == by_template(conversation)


def test_a_talk_without_thinking_is_rendered_as_by_the_template() -> None:
    messages = (said("user", "a"), said("assistant", "b"), LONG_TALK[1], *LONG_TALK[4:])
    conversation = Conversation("test", messages, (TOOL,), enable_thinking=False)
    assert rendered_text(conversation) == by_template(conversation)


def test_the_answer_is_what_follows_the_opener_up_to_the_next_speaker() -> None:
    segments = render(Conversation("test", LONG_TALK))
    call = "".join(text for text, token_class in segments if token_class is ANSWER and "tool_call" in text)
    assert segments == [
        ("[gMASK]<sop><|system|>Reasoning Effort: Max<|system|>Be brief.<|user|> hi \n<|assistant|><think>", PROMPT),
        ("greet\nback</think>hello<|user|>", ANSWER),
        ("call<|assistant|><think>", PROMPT),
        (call, ANSWER),
        ('<tool_response>{"a": 1}</tool_response><tool_response>é</tool_response><|assistant|><think>', PROMPT),
        ("</think>done<|user|>", ANSWER),
    ]
    assert call.startswith("</think><tool_call>f<arg_key>x</arg_key>")
    assert call.endswith("</tool_call><|observation|>")


def test_without_thinking_the_closed_thoughts_belong_to_the_prompt() -> None:
    segments = render(Conversation("test", (said("user", "a"), said("assistant", "b")), enable_thinking=False))
    assert segments == [("[gMASK]<sop><|user|>a<|assistant|><think></think>", PROMPT), ("b<|user|>", ANSWER)]


def test_silence_covers_what_others_say_but_no_marker() -> None:
    segments = render(Conversation("test", LONG_TALK, learns_prompt=False))
    assert [text for text, token_class in segments if token_class is SILENT] == [
        "Be brief.", " hi \n", "call", '{"a": 1}', "é",
    ]  # fmt: skip
    assert ("<|user|>", PROMPT) in segments
    assert ("</tool_response><tool_response>", PROMPT) in segments


@pytest.mark.parametrize(
    ("messages", "thinks"),
    [
        (LONG_TALK[:4], True),
        (LONG_TALK[:7], True),
        ((*LONG_TALK[:5], said("user", "no result"), said("assistant", "a")), True),
        ((*LONG_TALK[:3], said("tool", "no call", tool_call_id="call_1"), said("assistant", "a")), True),
        ((*LONG_TALK[:3], said("system", "rule"), said("assistant", "a")), True),
        ((*LONG_TALK[:5], LONG_TALK[6], LONG_TALK[5], LONG_TALK[7]), True),
        (LONG_TALK[:3], False),
    ],
)
def test_what_no_chat_has_is_refused(messages: tuple[Any, ...], thinks: bool) -> None:
    with pytest.raises(ValueError, match=r"the (last|results)|ends with|reasoning"):
        render(Conversation("test", messages, enable_thinking=thinks))


def test_a_reply_that_is_context_is_read_and_not_learned() -> None:
    messages = (
        said("user", "1+1"),
        said("assistant", "2", is_context=True),
        said("user", "2+2"),
        said("assistant", "4", reasoning_content="2+2=4"),
    )
    conversation = Conversation("test", messages)
    assert rendered_text(conversation) == by_template(conversation)
    assert render(conversation)[1:] == [
        ("</think>2", SILENT),
        ("<|user|>", ANSWER),
        ("2+2<|assistant|><think>", PROMPT),
        ("2+2=4</think>4<|user|>", ANSWER),
    ]
