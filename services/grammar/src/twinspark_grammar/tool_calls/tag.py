"""The structural tag of tool calls: markers as tokens, arguments in declared order."""

from collections.abc import Mapping
from typing import Any

from twinspark_grammar.schema.enforcement import Unenforced, find_unenforced
from twinspark_grammar.schema.shape import check_shapes
from twinspark_grammar.schema.typed import escape
from twinspark_grammar.tool_calls.tools import FunctionTool, NamedChoice, ToolCallSource
from twinspark_grammar.tool_calls.values import TEXT, Format, Parameters, value_format

CALL, CALL_END = "<tool_call>", "</tool_call>"
KEY, KEY_END = "<arg_key>", "</arg_key>"
VALUE, VALUE_END = "<arg_value>", "</arg_value>"
UNSUPPORTED = (
    "$ref",
    "anyOf",
    "oneOf",
    "allOf",
    "const",
    "enum",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
)
"""Keywords of the parameters themselves that are not enforced on arguments."""

NEWLINE: Format = {"type": "optional", "content": {"type": "const_string", "value": "\n"}}
"""Templates differ in whether they write one between the parts of a call."""
ANY_KEY: Format = {"type": "regex", "pattern": r"[^<>\s]+"}


def build_tag(source: ToolCallSource, added: Mapping[str, int]) -> dict[str, Any]:
    """Give the structural tag. `added`: the tokenizer's added tokens; no other than a call's may stand in text.

    Raises EndlessUnionError and SchemaError.
    """
    calls = {tool.function.name: _call(tool.function, _path(i)) for i, tool in enumerate(source.tools)}
    if isinstance(source.tool_choice, NamedChoice):
        return _tag(calls[source.tool_choice.function.name])
    return _tag(
        {
            "type": "token_triggered_tags",
            "trigger_tokens": [CALL],
            "tags": list(calls.values()),
            "exclude_tokens": [text for text in added if text != CALL],
            "at_least_one": source.tool_choice == "required",
            "stop_after_first": not source.parallel_tool_calls,
        }
    )


def find_unenforced_arguments(source: ToolCallSource) -> list[Unenforced]:
    """Give what masks do not enforce of each tool's parameters; only a tool that says `strict: true` refuses it.

    Raises SchemaError.
    """
    found = []
    for i, tool in enumerate(source.tools):
        function = tool.function
        if function.strict is False or function.parameters is None:
            continue
        path = _path(i)
        check_shapes(function.parameters, path)
        gaps = find_unenforced(function.parameters, path)
        gaps += _gaps_of_calls(function.parameters, path)
        for gap in gaps:
            is_refused = gap.is_refused and function.strict is True
            found.append(Unenforced(gap.keyword, gap.path, gap.reason, is_refused))
    return found


def _gaps_of_calls(parameters: dict[str, Any], path: str) -> list[Unenforced]:
    """What JSON would enforce and arguments do not: they are text, name by name."""
    gaps = [Unenforced(name, path, "not supported in tool parameters") for name in UNSUPPORTED if name in parameters]
    properties = parameters.get("properties")
    for name, schema in properties.items() if isinstance(properties, dict) else ():
        if isinstance(schema, dict) and "format" in schema:
            gaps.append(Unenforced("format", f"{path}/properties/{name}", "not supported in tool parameters"))
    return gaps


def _tag(content: Format) -> dict[str, Any]:
    return {"type": "structural_tag", "format": content}


def _token(text: str) -> Format:
    return {"type": "token", "token": text}


def _sequence(elements: list[Format]) -> Format:
    return {"type": "sequence", "elements": elements}


def _path(tool: int) -> str:
    return f"/tools/{tool}/function/parameters"


def _call(function: FunctionTool, path: str) -> Format:
    content = _sequence([{"type": "const_string", "value": function.name}, NEWLINE, *_arguments(function, path)])
    return {"type": "tag", "begin": _token(CALL), "content": content, "end": _token(CALL_END)}


def _arguments(function: FunctionTool, path: str) -> list[Format]:
    """Each property as declared, in order; then any others, where the schema is open."""
    parameters = function.parameters
    if function.strict is False or parameters is None or not isinstance(parameters.get("properties"), dict):
        is_open = parameters is None or function.strict is False or parameters.get("additionalProperties") is not False
        return [_any_arguments(TEXT)] if is_open else []
    required = parameters.get("required", [])
    root = Parameters(parameters, path)
    pairs = []
    for name, schema in parameters["properties"].items():
        value = value_format(schema, f"{path}/properties/{escape(name)}", root)
        pair = _pair({"type": "const_string", "value": name}, value)
        pairs.append(pair if name in required else {"type": "optional", "content": pair})
    additional = parameters.get("additionalProperties", False)
    if additional is not False:
        pairs.append(_any_arguments(value_format(additional, f"{path}/additionalProperties", root)))
    return pairs


def _any_arguments(value: Format) -> Format:
    return {"type": "star", "content": _pair(ANY_KEY, value)}


def _pair(key: Format, value: Format) -> Format:
    return _sequence([_token(KEY), key, _token(KEY_END), NEWLINE, _token(VALUE), value, _token(VALUE_END), NEWLINE])
