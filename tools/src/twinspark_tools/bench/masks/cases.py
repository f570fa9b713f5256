"""What is compiled and walked: grammars as clients send them, each with an output of its own."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from twinspark.grammar.v1 import grammar_pb2 as pb

PERSON: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "email": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 8},
        "role": {"enum": ["reader", "writer", "owner"]},
    },
    "required": ["name", "age", "email", "tags", "role"],
    "additionalProperties": False,
}
TREE: Mapping[str, Any] = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "label": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
            },
            "required": ["label", "children"],
            "additionalProperties": False,
        }
    },
}
SEARCH: Mapping[str, Any] = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
    "required": ["query"],
}
NUM_WIDE = 60
WIDE: Mapping[str, Any] = {
    "type": "object",
    "properties": {f"field_{place}": PERSON["properties"]["email"] for place in range(NUM_WIDE)},
    "required": [f"field_{place}" for place in range(NUM_WIDE)],
}
ANA = {"name": "Ana Löwe", "age": 31, "email": None, "tags": ["red river", "stone"], "role": "writer"}
LEAF = {"label": "a leaf of the tree", "children": []}
CALL = (
    "<tool_call>search<arg_key>query</arg_key><arg_value>the weather in Malvorn, and why</arg_value>"
    "<arg_key>limit</arg_key><arg_value>12</arg_value></tool_call>"
)


@dataclass(frozen=True, slots=True)
class Case:
    """`output`: a whole output of the grammar."""

    name: str
    kind: "pb.GrammarKind.ValueType"
    source: str
    output: str


def build_cases() -> list[Case]:
    """One of each kind of source that a request may bring; two schemas more."""
    schema = pb.GRAMMAR_KIND_JSON_SCHEMA
    people = {"type": "array", "items": PERSON}
    tools = [{"type": "function", "function": {"name": "search", "parameters": SEARCH}}]
    calls = {"tools": tools, "tool_choice": "required", "parallel_tool_calls": True}
    prose = "The river runs over old stones; nobody has counted them yet."
    return [
        Case("array of records", schema, json.dumps(people), json.dumps([ANA, ANA, ANA], ensure_ascii=False)),
        Case("recursive schema", schema, json.dumps(TREE), json.dumps({"label": "root", "children": [LEAF] * 4})),
        Case("60 fields", schema, json.dumps(WIDE), json.dumps(dict.fromkeys(WIDE["required"], "some text"))),
        Case("any JSON object", pb.GRAMMAR_KIND_JSON_OBJECT, "", json.dumps({"free": [1, 2.5, LEAF], "form": ANA})),
        Case("regex", pb.GRAMMAR_KIND_REGEX, r"[A-Z][a-z ,;]{3,200}[.]", prose.replace(".", "") + "."),
        Case("required tool call", pb.GRAMMAR_KIND_TOOL_CALLS, json.dumps(calls), CALL),
    ]
