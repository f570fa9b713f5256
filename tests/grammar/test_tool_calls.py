"""Grammars of tool calls in GLM's markup."""

from typing import Any

import pytest

from support.grammar_texts import Grammars, allowed_ids
from twinspark_grammar.compiling.job import Compiled, Refused
from twinspark_grammar.source import GrammarKind
from twinspark_grammar.tool_calls.values import text_without

CALLS = GrammarKind.TOOL_CALLS
CITY = {"type": "string"}
WEATHER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": CITY,
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
        "unit": {"enum": ["c", "f"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "note": {"type": ["string", "null"]},
    },
    "required": ["city"],
}


def tool(name: str, parameters: Any = None, **more: Any) -> dict[str, Any]:
    function = {"name": name, **({} if parameters is None else {"parameters": parameters}), **more}
    return {"type": "function", "function": function}


def call(name: str, **arguments: str) -> str:
    pairs = [f"<arg_key>{key}</arg_key><arg_value>{value}</arg_value>" for key, value in arguments.items()]
    return f"<tool_call>{name}{''.join(pairs)}</tool_call>"


def source(choice: Any = "auto", *, parallel: bool = True) -> dict[str, Any]:
    tools = [tool("weather", WEATHER), tool("time", {"type": "object", "properties": {}}), tool("any")]
    return {"tools": tools, "tool_choice": choice, "parallel_tool_calls": parallel}


NAMED = {"type": "function", "function": {"name": "weather"}}
ONE = call("weather", city="Paris")


@pytest.mark.parametrize(
    ("text", "auto", "required", "named"),
    [
        ("", True, False, False),
        ("Just text, < and > too.", True, False, False),
        (ONE, True, True, True),
        (call("time"), True, True, False),
        (ONE + call("time") + "\n" + call("any", x="1"), True, True, False),
        ("First: " + ONE, True, False, False),
        (ONE + " and done", True, True, False),
        (call("nothing"), False, False, False),
        ("<tool_call>weather", False, False, False),
        (call("weather"), False, False, False),
    ],
)
def test_what_each_choice_allows(grammars: Grammars, text: str, auto: bool, required: bool, named: bool) -> None:
    for choice, expected in (("auto", auto), ("required", required), (NAMED, named)):
        assert grammars.accepts(grammars.compile(CALLS, source(choice)), text) is expected, choice


@pytest.mark.parametrize(("text", "is_allowed"), [(ONE, True), (ONE + call("time"), False), ("a " + ONE, True)])
def test_without_parallel_calls_there_is_one(grammars: Grammars, text: str, is_allowed: bool) -> None:
    assert grammars.accepts(grammars.compile(CALLS, source(parallel=False)), text) is is_allowed


@pytest.mark.parametrize(
    ("arguments", "is_allowed"),
    [
        ({"city": 'Zürich\n<b>\'s "x" </tool_cal </arg_valu'}, True),
        ({"city": ""}, True),
        ({"city": "x", "days": "3"}, True),
        ({"city": "x", "days": "15"}, False),
        ({"city": "x", "days": '"3"'}, False),
        ({"city": "x", "unit": "f"}, True),
        ({"city": "x", "unit": '"f"'}, False),
        ({"city": "x", "tags": '["a", "b"]'}, True),
        ({"city": "x", "tags": "['a']"}, False),
        ({"city": "x", "note": "null"}, True),
        ({"days": "3", "city": "x"}, False),
        ({"city": "x", "other": "y"}, False),
    ],
)
def test_arguments_are_held_to_the_parameters(grammars: Grammars, arguments: dict[str, str], is_allowed: bool) -> None:
    grammar = grammars.compile(CALLS, source(NAMED))
    assert grammars.accepts(grammar, call("weather", **arguments)) is is_allowed


def test_a_tool_that_is_not_strict_takes_any_arguments(grammars: Grammars) -> None:
    grammar = grammars.compile(CALLS, {"tools": [tool("weather", WEATHER, strict=False)], "tool_choice": "required"})
    assert grammars.accepts(grammar, call("weather", days="many", other="[1"))


def test_newlines_between_the_parts_of_a_call_are_allowed(grammars: Grammars) -> None:
    spaced = "<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>x</arg_value>\n</tool_call>"
    assert grammars.accepts(grammars.compile(CALLS, source("required")), spaced)


def test_an_open_schema_takes_other_arguments_by_its_own_rule(grammars: Grammars) -> None:
    parameters = {"type": "object", "properties": {"a": CITY}, "additionalProperties": {"type": "integer"}}
    grammar = grammars.compile(CALLS, {"tools": [tool("f", parameters)], "tool_choice": "required"})
    assert grammars.accepts(grammar, call("f", a="x", b="1"))
    assert not grammars.accepts(grammar, call("f", a="x", b="y"))


def test_references_of_a_parameter_mean_the_tools_parameters(grammars: Grammars) -> None:
    parameters = {
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/node"}, "list": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
        "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}},
    }
    grammar = grammars.compile(CALLS, {"tools": [tool("f", parameters)], "tool_choice": "required"})
    assert grammars.accepts(grammar, call("f", tree='{"next": {"next": {}}}', list='[{"next": {}}]'))
    assert not grammars.accepts(grammar, call("f", tree='{"next": 1}'))


def test_only_the_markers_that_are_due_are_allowed_and_only_as_tokens(grammars: Grammars) -> None:
    grammar, added = grammars.compile(CALLS, source("required")), grammars.vocabulary.added
    window = grammars.open(grammar).advance([], grammars.encode(call("weather", city="some text", tags='["a"]')))
    markers = {i: text for text, i in added.items() if i != grammars.end}
    seen = [{markers[i] for i in allowed_ids(window, row) if i in markers} for row in range(len(window.complete))]
    assert seen[0] == {"<tool_call>"}
    assert all(len(found) <= 2 for found in seen)
    assert set().union(*seen) == {
        "<tool_call>",
        "</tool_call>",
        "<arg_key>",
        "</arg_key>",
        "<arg_value>",
        "</arg_value>",
    }
    ids = grammars.encode("<tool_call>weather<arg_key>city</arg_key><arg_value>x")
    spelled = [i for char in "</arg_value>" for i in grammars.encode(char)]
    window = grammars.open(grammar).advance([], ids + spelled)
    assert window.num_allowed_drafts == len(ids) + len(spelled) - 1


@pytest.mark.parametrize(
    ("text", "is_allowed"),
    [("abcab", True), ("<abc<<ab", True), ("<<a><a>", True), ("x<ab>y", False), ("<<ab>", False), ("", True)],
)
def test_the_grammar_of_text_without_a_word(demo: Grammars, text: str, is_allowed: bool) -> None:
    grammar = demo.compile(GrammarKind.EBNF, text_without("<ab>"))
    assert demo.accepts(grammar, text) is is_allowed


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"tools": []}, "tools: "),
        ({"tools": [tool("a b")]}, "tools.0.function.name: "),
        ({"tools": [tool("a"), tool("a")]}, "two tools have one name"),
        ({"tool_choice": "sometimes"}, "tool_choice"),
        ({"tool_choice": {"type": "function", "function": {"name": "no"}}}, "names a tool that is not there"),
    ],
)
def test_a_source_that_describes_no_tools_is_refused(demo: Grammars, change: dict[str, Any], reason: str) -> None:
    outcome = demo.run(CALLS, source() | change)
    assert isinstance(outcome, Refused)
    assert reason in outcome.message


def test_a_union_of_itself_is_refused(demo: Grammars) -> None:
    parameters = {"type": "object", "properties": {"a": {"anyOf": [{"$ref": "#/properties/a"}]}}}
    outcome = demo.run(CALLS, {"tools": [tool("f", parameters)]})
    assert isinstance(outcome, Refused)
    assert "refers to itself" in outcome.message


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (
            {"type": "array", "items": {"type": "string", "pattern": '^"x"$'}},
            "pattern at /tools/0/function/parameters/properties/a/items cannot be held",
        ),
        (
            {"anyOf": [{"type": "object", "patternProperties": {r"^a\tb$": {}}}]},
            "patternProperties at /tools/0/function/parameters/properties/a/anyOf/0 cannot be held",
        ),
        (
            {"type": "array", "items": {"$ref": "#/$defs/s"}},
            "pattern at /tools/0/function/parameters/$defs/s cannot be held",
        ),
        ({"anyOf": []}, "anyOf at /tools/0/function/parameters/properties/a must not be empty"),
        (
            {"type": "object", "required": None},
            "required at /tools/0/function/parameters/properties/a must be an array of strings",
        ),
    ],
)
def test_a_parameter_that_cannot_be_compiled_is_refused_by_its_place(
    demo: Grammars, schema: dict[str, Any], reason: str
) -> None:
    shared = {"s": {"type": "string", "pattern": r"^C:\\temp$"}}
    parameters = {"type": "object", "properties": {"a": schema}, "$defs": shared}
    outcome = demo.run(CALLS, {"tools": [tool("f", parameters, strict=True)]})
    assert isinstance(outcome, Refused)
    assert outcome.message.startswith(reason)


def test_a_text_parameter_holds_what_its_pattern_says_as_it_is(demo: Grammars) -> None:
    parameters = {"type": "object", "properties": {"a": {"type": "string", "pattern": '^"x"$'}}, "required": ["a"]}
    grammar = demo.compile(CALLS, {"tools": [tool("f", parameters)], "tool_choice": "required"})
    assert demo.accepts(grammar, call("f", a='"x"'))


def test_only_a_strict_tool_refuses_what_is_not_enforced(demo: Grammars) -> None:
    parameters = {"type": "object", "properties": {"a": {"type": "array", "items": {}, "uniqueItems": True}}}
    for strict, expected in ((True, [True]), (None, [False]), (False, [])):
        outcome = demo.run(CALLS, {"tools": [tool("f", parameters, strict=strict)]})
        assert isinstance(outcome, Compiled)
        assert [gap.is_refused for gap in outcome.unenforced] == expected
        assert {gap.path for gap in outcome.unenforced} <= {"/tools/0/function/parameters/properties/a"}


def test_a_structural_tag_names_added_tokens_and_no_others(demo: Grammars) -> None:
    tag = {
        "type": "structural_tag",
        "format": {
            "type": "tag",
            "begin": {"type": "token", "token": "<|begin_of_box|>"},
            "content": {"type": "json_schema", "json_schema": {"type": "integer"}},
            "end": {"type": "token", "token": "<|end_of_box|>"},
        },
    }
    grammar = demo.compile(GrammarKind.STRUCTURAL_TAG, tag)
    assert demo.accepts(grammar, "<|begin_of_box|>12<|end_of_box|>")
    assert not demo.accepts(grammar, "<|begin_of_box|>x<|end_of_box|>")
    tag["format"]["begin"]["token"] = "<nothing>"  # type: ignore[index]
    outcome = demo.run(GrammarKind.STRUCTURAL_TAG, tag)
    assert isinstance(outcome, Refused)
    assert "'<nothing>' is not an added token" in outcome.message
