"""Which keywords of a JSON schema the masks do not, or not wholly, enforce.

This mirrors how xgrammar 0.2.9 reads a schema: the first of $ref, const, enum, anyOf, oneOf, allOf decides alone, then
the type. Tests compare it with the masks themselves.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from twinspark_grammar.schema.branches import are_disjoint
from twinspark_grammar.schema.keywords import BY_TYPE, CONSTRAINTS, GENERIC, has_type
from twinspark_grammar.schema.references import find
from twinspark_grammar.schema.typed import check_type, children_of

DECIDING = ("$ref", "const", "enum", "anyOf", "oneOf", "allOf")
OBJECT_HINTS = ("properties", "additionalProperties", "unevaluatedProperties")
ARRAY_HINTS = ("items", "prefixItems", "unevaluatedItems")
"""Without a type, one of these makes the value an object or an array."""


@dataclass(frozen=True, slots=True)
class Unenforced:
    """One keyword at one place. `path`: JSON pointer."""

    keyword: str
    path: str
    reason: str
    is_refused: bool = True
    """Whether strict refuses it."""


def find_unenforced(root: Any, path: str = "") -> list[Unenforced]:
    """Give what a schema asks for in vain, in the order of the schema. `path`: of the schema in its source."""
    return [gap for schema, place in walk(root, path, root, path) for gap in _check(schema, place, root)]


def walk(schema: Any, path: str, root: Any, root_path: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Give a schema and all that xgrammar reads in it, each once, with its JSON pointer; `$ref` means the root."""
    followed: set[str] = set()
    pending = [(schema, path)]
    while pending:
        part, place = pending.pop()
        if not isinstance(part, dict):
            continue
        yield part, place
        children = list(_children(part, place))
        reference = part.get("$ref")
        if isinstance(reference, str) and reference not in followed:
            followed.add(reference)
            children.append((find(reference, root), root_path + reference.removeprefix("#")))
        pending += reversed(children)


def _check(schema: dict[str, Any], path: str, root: Any) -> Iterator[Unenforced]:
    decider = deciding_keyword(schema)
    if decider is not None:
        yield from _check_decided(schema, decider, path, root)
        return
    types = types_of(schema)
    if not types:
        for keyword in schema:
            if keyword in CONSTRAINTS:
                yield Unenforced(keyword, path, "ignored without a type")
        return
    for keyword in schema:
        if keyword in GENERIC - {"type"}:
            yield Unenforced(keyword, path, "not supported")
    for name in types:
        for keyword, reason in check_type(name, schema):
            yield Unenforced(keyword, path, reason)


def _check_decided(schema: dict[str, Any], decider: str, path: str, root: Any) -> Iterator[Unenforced]:
    for keyword in schema:
        if keyword in CONSTRAINTS and keyword != decider and not _is_implied(schema, decider, keyword):
            yield Unenforced(keyword, path, f"ignored beside {decider}")
    members = schema[decider]
    if decider == "$ref" and find(str(members), root) is None:
        yield Unenforced("$ref", path, "only # and #/... of the same schema are followed")
    if decider == "allOf" and isinstance(members, list) and len(members) != 1:
        yield Unenforced("allOf", path, "only one member is supported")
    if decider == "oneOf" and isinstance(members, list) and not are_disjoint(members, root):
        yield Unenforced("oneOf", path, "acts as anyOf: its branches may overlap", is_refused=False)


def _is_implied(schema: dict[str, Any], decider: str, keyword: str) -> bool:
    """Whether a keyword beside const or enum says nothing that the values do not say themselves."""
    if decider not in ("const", "enum"):
        return False
    values = [schema["const"]] if decider == "const" else schema["enum"]
    if not isinstance(values, list):
        return False
    if keyword == "type":
        return all(has_type(value, schema["type"]) for value in values)
    applies_to = [name for name, keywords in BY_TYPE.items() if keyword in keywords]
    return bool(applies_to) and not any(has_type(value, applies_to) for value in values)


def deciding_keyword(schema: dict[str, Any]) -> str | None:
    """Give the keyword that alone says what a value may be; None where the type does."""
    return next((keyword for keyword in DECIDING if keyword in schema), None)


def types_of(schema: dict[str, Any]) -> list[str]:
    """Give the types that a value may have; none where xgrammar takes any value."""
    types = schema.get("type")
    if isinstance(types, str):
        return [types]
    if isinstance(types, list) and types:
        return [name for name in types if isinstance(name, str)]
    if any(keyword in schema for keyword in OBJECT_HINTS):
        return ["object"]
    return ["array"] if any(keyword in schema for keyword in ARRAY_HINTS) else []


def _children(schema: dict[str, Any], path: str) -> Iterator[tuple[Any, str]]:
    """Give the subschemas that xgrammar reads, with their places."""
    decider = deciding_keyword(schema)
    if decider is None:
        yield from children_of(schema, types_of(schema), path)
    elif decider in ("anyOf", "oneOf", "allOf") and isinstance(schema[decider], list):
        for i, member in enumerate(schema[decider]):
            yield member, f"{path}/{decider}/{i}"
