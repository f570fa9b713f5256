"""Random tools, values and cuts: a call comes back as it was meant, and no split of a reply changes its message."""

import json
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from support.scripted_replies import BYTE_IDS, segments
from support.scripts import encode
from support.tiny_tokenizer import MARKUP
from twinspark_gateway.prompt.tokenizer import Tokenizer
from twinspark_gateway.reply.chat_reader import ChatReader
from twinspark_gateway.reply.text_reader import SafeText
from twinspark_gateway.schemas.fields import Fields
from twinspark_gateway.schemas.tools import read_tool_offer
from twinspark_gateway.tools.offer import ToolOffer

EOS = frozenset({273, 277, 279})
OBSERVATION = 279
NAMES = st.text("abAB_.-9", min_size=1, max_size=6)
TAGS = [text for text in MARKUP if "response" not in text]
# Ordinary text, characters of several bytes, and tags; one of them is the only thing that can end a value.
HOSTILE = st.lists(
    st.sampled_from([*TAGS, "a", " ", "\n", "é", "😀", "日本", "null", "1", '"', "\\", "<", "</", "tool_call>"]),
    max_size=8,
).map("".join)
JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats(-1e6, 1e6)
    | st.text('ab"\\é{}[],:\n', max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=3), inner, max_size=3),
    max_leaves=6,
)
TYPED: dict[str, st.SearchStrategy[Any]] = {
    "integer": st.integers(-(10**12), 10**12),
    "number": st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**12), 10**12),
    "boolean": st.booleans(),
    "null": st.none(),
    "array": st.lists(JSON_VALUES, max_size=3),
    "object": st.dictionaries(st.text("ab", max_size=3), JSON_VALUES, max_size=3),
}
ANY_IDS = st.lists(
    st.sampled_from([*(encode(tag)[0] for tag in TAGS), *encode("f g x"), *encode("é"), *encode("\n"), 273, 275]),
    max_size=40,
)


def is_data(value: str) -> bool:
    """Whether a value has no end inside it: no `</arg_value>` before a tag that could go on, or before its own end."""
    rest = value
    while "</arg_value>" in rest:
        rest = rest.partition("</arg_value>")[2]
        if not rest.strip() or rest.lstrip().startswith(("<arg_key>", "</tool_call>")):
            return not rest.strip()
    return True


@st.composite
def calls(draw: st.DrawFn) -> tuple[list[dict[str, Any]], str, list[tuple[str, dict[str, Any]]]]:
    """Tools, a raw reply that calls them, and the calls."""
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique_by=str.lower))
    tools, raw, expected = [], "", []
    schemas = {}
    for name in names:
        keys = draw(st.lists(st.text("abé", min_size=1, max_size=4), max_size=3, unique=True))
        schemas[name] = {key: draw(st.sampled_from(["string", *TYPED])) for key in keys}
        properties = {key: {"type": kind} for key, kind in schemas[name].items()}
        tools.append({"type": "function", "function": {"name": name, "parameters": {"properties": properties}}})
    for name in draw(st.lists(st.sampled_from(names), min_size=1, max_size=3)):
        blank = draw(st.sampled_from(["", "\n", " "]))
        arguments = {}
        raw += f"<tool_call>{name}{blank}"
        for key, kind in schemas[name].items():
            value = draw(HOSTILE.filter(is_data) if kind == "string" else TYPED[kind])
            written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            raw += f"<arg_key>{key}</arg_key>{blank}<arg_value>{written}</arg_value>{blank}"
            arguments[key] = value
        raw += f"</tool_call>{blank}"
        expected.append((name, arguments))
    return tools, raw, expected


def cut_up(draw: st.DrawFn, raw: str) -> list[int]:
    """Tokens of a raw text, cut at random bytes of its ordinary text."""
    ids: list[int] = []
    for text, is_markup in segments(raw):
        if is_markup or draw(st.booleans()):
            ids += encode(text) if is_markup else [BYTE_IDS[byte] for byte in text.encode()]
        else:
            ids += [token for char in text for token in ([BYTE_IDS[60]] if char == "<" else encode(char))]
    return ids


def read(tokenizer: Tokenizer, offer: ToolOffer, ids: list[int], *, prompt: str, stops: tuple[str, ...] = ()) -> Any:
    """Read a reply to its first end token; give reasoning, content, calls and the stop."""
    reader = ChatReader(tokenizer, encode(prompt), stops, skip_special_tokens=True, offer=offer, eos_token_ids=EOS)
    total = SafeText()
    for token_id in ids:
        total.add(reader.end(token_id, None) if token_id in EOS else reader.take(token_id, None))
        if token_id in EOS or reader.matched_stop is not None:
            break
    else:
        total.add(reader.end(None, None))
    named = [(call.name, call.arguments) for call in total.calls]
    assert [call.index for call in total.calls] == list(range(reader.num_calls))
    return total.reasoning, total.content, named, reader.matched_stop


@given(data=st.data(), made=calls())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
def test_calls_come_back_as_they_were_meant(tokenizer: Tokenizer, data: st.DataObject, made: Any) -> None:
    tools, raw, expected = made
    offer = read_tool_offer(Fields({"tools": tools}))
    ids = [*data.draw(st.composite(cut_up)(raw)), OBSERVATION]
    for prompt in ("<think></think>", "<think>"):
        # Inside the reasoning they count too, as the reply ends there by handing over.
        reasoning, content, found, _ = read(tokenizer, offer, ids, prompt=prompt)
        if prompt == "<think>" and any(tag in raw for tag in ("<think>", "</think>")):
            continue
        assert (reasoning, content) == ("", "")
        assert [(name, json.loads(arguments)) for name, arguments in found] == expected
        assert [list(json.loads(arguments)) for _, arguments in found] == [list(wanted) for _, wanted in expected]


OFFER = read_tool_offer(
    Fields(
        {"tools": [{"function": {"name": "f", "parameters": {"properties": {"x": {}}}}}, {"function": {"name": "g"}}]}
    )
)


@given(
    ids=ANY_IDS,
    stops=st.lists(st.sampled_from(["f", "\n", "x</", "é"]), max_size=2),
    end=st.sampled_from([None, 273, 277, OBSERVATION]),
)
@example(
    ids=[*encode("<tool_call>f<arg_key>x</arg_key><arg_value>é</arg_value></tool_call>")], stops=[], end=OBSERVATION
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=400)
def test_no_split_changes_a_message_and_nothing_is_lost(
    tokenizer: Tokenizer, ids: list[int], stops: list[str], end: int | None
) -> None:
    """Any tokens at all: bytes or merged, the message is the same, every call is whole, and the rest is text."""
    raw = tokenizer.decode([token for token in ids if token not in (273, 275)])
    whole = [token for text, is_markup in segments(raw) for token in (encode(text) if is_markup else merged(text))]
    each_byte = [
        token
        for text, is_markup in segments(raw)
        for token in (encode(text) if is_markup else [BYTE_IDS[byte] for byte in text.encode()])
    ]
    ends = [] if end is None else [end]
    for prompt in ("<think></think>", "<think>"):
        message = read(tokenizer, OFFER, [*whole, *ends], prompt=prompt, stops=tuple(stops))
        assert read(tokenizer, OFFER, [*each_byte, *ends], prompt=prompt, stops=tuple(stops)) == message
        reasoning, content, found, stop = message
        assert all(isinstance(json.loads(arguments), dict) for _, arguments in found)
        assert all(name in ("f", "g") for name, _ in found)
        if not found and stop is None:
            visible = raw.replace("<think>", "").replace("</think>", "")
            assert "".join((reasoning + content).split()) == "".join(visible.split())


def merged(text: str) -> list[int]:
    """Ids of ordinary text in the tokenizer's own way, apart from what would make it a token."""
    return [token for part in text.replace("<", "\ufdd0<\ufdd0").split("\ufdd0") if part for token in encode(part)]


def test_a_character_that_a_tag_interrupts_is_dropped(tokenizer: Tokenizer) -> None:
    half = encode("é")[:1]
    data = [
        *encode("<tool_call>f<arg_key>x</arg_key><arg_value>a"),
        *half,
        *encode("<arg_key>b</arg_value></tool_call>"),
    ]
    assert read(tokenizer, OFFER, data, prompt="<think></think>")[2] == [("f", '{"x":"a<arg_key>b"}')]
    assert read(tokenizer, OFFER, [*half, *encode("</tool_call>")], prompt="<think></think>")[1] == "</tool_call>"
    call = [*encode("<tool_call>f<arg_key>x</arg_key><arg_value>a"), *half, *encode("</arg_value></tool_call>")]
    for prompt in ("<think></think>", "<think>"):
        assert read(tokenizer, OFFER, [*call, OBSERVATION], prompt=prompt)[2] == [("f", '{"x":"a"}')]
    assert read(tokenizer, OFFER, [*half, *encode("<tool_call>g</tool_call>")], prompt="<think></think>")[:2] == (
        "",
        "",
    )
