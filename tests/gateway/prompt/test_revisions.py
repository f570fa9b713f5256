"""Each published revision of the chat template, as a request meets it: switches, history, what is continued."""

from pathlib import Path
from typing import Any

import jinja2
import pytest

from support.scripts import encode
from support.template_revisions import REVISIONS
from support.tiny_tokenizer import write_folder
from twinspark_gateway.errors import ApiError
from twinspark_gateway.prompt.reasoning import Part, ReasoningSplitter
from twinspark_gateway.prompt.template import render_prompt
from twinspark_gateway.prompt.tokenizer import Tokenizer, load_tokenizer
from twinspark_gateway.schemas.conversation import read_conversation
from twinspark_gateway.schemas.fields import Fields
from twinspark_gateway.schemas.thinking import ThinkingDefaults, read_thinking

HEAD = "[gMASK]<sop>"
MAX = f"{HEAD}<|system|>Reasoning Effort: Max"
CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x": "é", "n": null}'}}
CALLED = (
    "<tool_call>f<arg_key>x</arg_key><arg_value>é</arg_value><arg_key>n</arg_key>"
    "<arg_value>null</arg_value></tool_call>"
)
Message = dict[str, Any]


def load(folder: Path, template: str) -> Tokenizer:
    (write_folder(folder) / "chat_template.jinja").write_text(template)
    loaded = load_tokenizer(folder)
    assert loaded is not None
    return loaded


@pytest.fixture(scope="module", params=REVISIONS)
def revision(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return load(tmp_path_factory.mktemp("revision"), REVISIONS[request.param])


def user(text: str = "Hi") -> Message:
    return {"role": "user", "content": text}


def assistant(content: Any = None, **fields: Any) -> Message:
    return {"role": "assistant", "content": content, **fields}


def prompt(tokenizer: Tokenizer, messages: list[Message], **body: Any) -> list[int]:
    """Give the prompt of a request's body."""
    whole = {"messages": messages, **body}
    return render_prompt(read_conversation(whole, read_thinking(Fields(whole), ThinkingDefaults())), tokenizer)


def text(tokenizer: Tokenizer, messages: list[Message], **body: Any) -> str:
    """Give its text."""
    return tokenizer.decode(prompt(tokenizer, messages, **body))


@pytest.mark.parametrize(
    "off",
    [
        {"reasoning_effort": "none"},
        {"thinking": {"type": "disabled"}},
        {"chat_template_kwargs": {"enable_thinking": False}},
        {"chat_template_kwargs": {"thinking": False}, "reasoning_effort": "low"},
    ],
)
def test_thinking_off_takes_the_effort_line_out_and_closes_the_think_block(revision: Tokenizer, off: Any) -> None:
    tools = [{"type": "function", "function": {"name": "f"}}]
    assert text(revision, [user()], **off) == f"{HEAD}<|user|>Hi<|assistant|><think></think>"
    offered = text(revision, [user()], tools=tools, **off)
    assert offered.startswith(f"{HEAD}<|system|>\n# Tools\n")
    assert offered.endswith("<|user|>Hi<|assistant|><think></think>")
    system = text(revision, [{"role": "system", "content": "Reasoning Effort: Max"}, user()], **off)
    assert system == f"{HEAD}<|system|>Reasoning Effort: Max<|user|>Hi<|assistant|><think></think>"


@pytest.mark.parametrize(("effort", "line"), [("low", "Low"), ("medium", "High"), ("xhigh", "Max"), (None, "Max")])
def test_thinking_on_says_the_effort_and_opens_the_think_block(
    revision: Tokenizer, effort: str | None, line: str
) -> None:
    shown = text(revision, [user()], reasoning_effort=effort)
    assert shown == f"{HEAD}<|system|>Reasoning Effort: {line}<|user|>Hi<|assistant|><think>"


def test_null_content_never_shows_as_a_word(revision: Tokenizer) -> None:
    messages = [
        user(),
        assistant(None, tool_calls=[CALL]),
        {"role": "tool", "tool_call_id": "a", "content": None},
        assistant(),
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "a"},
    ]
    assert text(revision, messages) == (
        f"{MAX}<|user|>Hi<|assistant|><think></think>{CALLED}<|observation|><tool_response></tool_response>"
        f"<|assistant|><think></think><|assistant|><think></think>{CALLED}"
        "<|observation|><tool_response></tool_response><|assistant|><think>"
    )


def test_the_reasoning_of_all_turns_stays_unless_the_request_clears_it(revision: Tokenizer) -> None:
    messages = [user(), assistant("One", reasoning_content="old"), user("Go"), assistant("Two", reasoning="new")]
    for kwargs in ({}, {"clear_thinking": False}):
        kept = text(revision, messages, chat_template_kwargs=kwargs)
        assert kept == (
            f"{MAX}<|user|>Hi<|assistant|><think>old</think>One<|user|>Go<|assistant|><think>new</think>Two"
            "<|assistant|><think>"
        )
    cleared = text(revision, messages, chat_template_kwargs={"clear_thinking": True})
    assert cleared == (
        f"{MAX}<|user|>Hi<|assistant|><think></think>One<|user|>Go<|assistant|><think>new</think>Two"
        "<|assistant|><think>"
    )


def test_a_longer_conversation_begins_with_the_prompt_of_a_shorter_one(revision: Tokenizer) -> None:
    first = text(revision, [user()])
    second = text(revision, [user(), assistant("One", reasoning_content="why"), user("Go")])
    assert second.startswith(f"{first}why</think>One<|user|>")


CONTINUED: list[tuple[Message, dict[str, Any], str]] = [
    (assistant("Once upon"), {}, "<think></think>Once upon"),
    (assistant("Once upon a \n"), {}, "<think></think>Once upon a \n"),
    (assistant("Once", reasoning_content="why"), {}, "<think>why</think>Once"),
    (assistant([{"type": "text", "text": "Once "}, {"type": "text", "text": "upon"}]), {}, "<think></think>Once upon"),
    # A reply that was cut inside its reasoning looks like this.
    (assistant("", reasoning_content="because "), {}, "<think>because "),
    (assistant(None, reasoning="because"), {}, "<think>because"),
    (assistant("<think>because"), {}, "<think>because"),
    (assistant("<think>\nbecause\n"), {}, "<think>because\n"),
    (assistant("<think>why</think>Once"), {}, "<think>why</think>Once"),
    (assistant("<think>why</think>"), {}, "<think>why</think>"),
    (assistant("\n", reasoning_content="why"), {}, "<think>why</think>"),
    (assistant(""), {}, "<think></think>"),
    # Text that comes again elsewhere, or that nothing but a mark could find.
    (assistant("Hi"), {}, "<think></think>Hi"),
    (assistant("a<|user|></think>", reasoning_content="x"), {}, "<think>x</think>a<|user|></think>"),
    (assistant("Once"), {"reasoning_effort": "none"}, "<think></think>Once"),
    (assistant("", reasoning_content="why"), {"reasoning_effort": "none"}, "<think>why</think>"),
    (assistant("<think>why"), {"thinking": False}, "<think>why</think>"),
]


@pytest.mark.parametrize(("last", "body", "shown"), CONTINUED)
def test_the_last_message_is_continued_where_it_ends(
    revision: Tokenizer, last: Message, body: dict[str, Any], shown: str
) -> None:
    ids = prompt(revision, [user(), last], continue_final_message=True, **body)
    head = HEAD if body else MAX
    assert revision.decode(ids) == f"{head}<|user|>Hi<|assistant|>{shown}"
    # The reply begins inside the reasoning exactly where the prompt is.
    splitter = ReasoningSplitter(revision.think_tokens(), ids)
    assert splitter.is_inside == ("</think>" not in shown)
    assert splitter.place(encode("a")[0]) is (Part.ANSWER if "</think>" in shown else Part.REASONING)
    # Typed markup stays text: the turn has one opening token, and one that closes it at most.
    assert [ids.count(token_id) for token_id in (277, 278, 283)] == [1, 1, 1]
    assert ids.count(284) == (not splitter.is_inside)


def test_a_continued_message_may_stand_behind_tools_and_results(revision: Tokenizer) -> None:
    messages = [
        user(),
        assistant("So", tool_calls=[CALL]),
        {"role": "tool", "tool_call_id": "a", "content": "So"},
        assistant("So", reasoning_content="So"),
    ]
    tools = [{"type": "function", "function": {"name": "f", "description": "So"}}]
    shown = text(revision, messages, tools=tools, continue_final_message=True)
    assert shown.endswith("<|observation|><tool_response>So</tool_response><|assistant|><think>So</think>So")


@pytest.mark.parametrize(
    "messages",
    [[user()], [user(), assistant("x", tool_calls=[CALL])], [user(), {"role": "tool", "content": "x"}]],
)
def test_what_cannot_be_continued_is_refused(revision: Tokenizer, messages: list[Message]) -> None:
    with pytest.raises(ApiError, match="assistant message without tool calls") as caught:
        text(revision, messages, continue_final_message=True)
    assert (caught.value.status, caught.value.param) == (400, "continue_final_message")


def test_a_template_that_does_not_show_the_message_refuses(tmp_path: Path) -> None:
    tokenizer = load(tmp_path, "{% for m in messages %}{{ m.content }}{% endfor %}")
    assert text(tokenizer, [user(), assistant("a ")], continue_final_message=True) == "Hia "
    with pytest.raises(ApiError, match="does not show the message"):
        text(tokenizer, [user(), assistant("", reasoning_content="why")], continue_final_message=True)


def test_revisions_differ_where_the_published_ones_do() -> None:
    """These templates, rendered without the gateway: else the tests above could not fail."""

    def render(name: str, **variables: Any) -> str:
        environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
        return environment.from_string(REVISIONS[name]).render(add_generation_prompt=True, **variables)

    messages = [assistant("One", reasoning_content="old"), user(), assistant(None)]
    shown = {name: render(name, messages=messages) for name in REVISIONS}
    assert [("old" in text, "None" in text) for text in shown.values()] == [
        (False, True),
        (True, True),
        (True, False),
        (True, False),
    ]
    off = {name: render(name, messages=[user()], enable_thinking=False) for name in REVISIONS}
    assert [text.endswith("</think>") for text in off.values()] == [False, False, False, True]
    image = {name: render(name, messages=[{"role": "user", "content": [{"type": "image"}]}]) for name in REVISIONS}
    assert ["<|image|>" in text for text in image.values()] == [False, True, True, True]
