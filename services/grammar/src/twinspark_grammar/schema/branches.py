"""Whether the branches of a oneOf exclude one another, so that masks, which treat it as anyOf, enforce it."""

import json
from collections.abc import Sequence
from itertools import combinations
from typing import Any

from twinspark_grammar.schema.keywords import has_type, type_of
from twinspark_grammar.schema.references import resolve

MOST_BRANCHES = 64
"""Of more, no proof is tried."""


def are_disjoint(branches: Sequence[Any], root: Any) -> bool:
    """Say whether no value can match two of the branches; False where that is not plain to see."""
    if len(branches) > MOST_BRANCHES:
        return False
    resolved = [resolve(branch, root) for branch in branches]
    return all(_exclude(one, other, root) for one, other in combinations(resolved, 2))


def _exclude(one: Any, other: Any, root: Any) -> bool:
    if not isinstance(one, dict) or not isinstance(other, dict):
        return False
    return _values_exclude(one, other) or _tags_exclude(one, other, root)


def _values_exclude(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """By their finite values, or by their types."""
    values, others = _finite_values(one), _finite_values(other)
    if values is not None and others is not None:
        return not {_key(value) for value in values} & {_key(value) for value in others}
    if values is not None and "type" in other:
        return not any(has_type(value, other["type"]) for value in values)
    if others is not None and "type" in one:
        return not any(has_type(value, one["type"]) for value in others)
    types, other_types = _types(one), _types(other)
    return bool(types) and bool(other_types) and not types & other_types


def _tags_exclude(one: dict[str, Any], other: dict[str, Any], root: Any) -> bool:
    """By a property that both are closed to objects with, require, and give different values."""
    if one.get("type") != "object" or other.get("type") != "object":
        return False
    for name in _required(one) & _required(other):
        tag, other_tag = (resolve(_properties(branch).get(name), root) for branch in (one, other))
        if isinstance(tag, dict) and isinstance(other_tag, dict) and _values_exclude(tag, other_tag):
            return True
    return False


def _finite_values(schema: dict[str, Any]) -> list[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    values = schema.get("enum")
    return values if isinstance(values, list) else None


def _types(schema: dict[str, Any]) -> set[str]:
    names = schema.get("type", [])
    found = set(map(str, names)) if isinstance(names, list) else {str(names)}
    return found | {"integer"} if "number" in found else found


def _required(schema: dict[str, Any]) -> set[str]:
    names = schema.get("required")
    return {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()


def _properties(schema: dict[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _key(value: Any) -> str:
    """Equal for equal JSON values, 1 and 1.0 included."""
    if type_of(value) == "integer":
        value = int(value)
    return json.dumps(value, sort_keys=True)
