"""What masks enforce of the keywords of each type."""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from twinspark_grammar.schema.keywords import FORMATS

Schema = Mapping[str, Any]
Gaps = Iterator[tuple[str, str]]
"""Keyword and why it is not enforced."""

NEVER_OF_ARRAYS = ("contains", "minContains", "maxContains", "additionalItems")
NEVER_OF_OBJECTS = ("dependentRequired", "dependentSchemas")
NOT_SUPPORTED = "not supported"


def check_type(name: str, schema: Schema) -> Gaps:
    """Give the keywords that apply to a type and are not, or not wholly, enforced."""
    check = _CHECKS.get(name)
    return check(schema) if check is not None else iter(())


def _check_number(schema: Schema) -> Gaps:
    if "multipleOf" in schema:
        yield "multipleOf", "supported for integers only"


def _check_string(schema: Schema) -> Gaps:
    known = schema.get("format") in FORMATS
    if "format" in schema and not known:
        yield "format", "no such format is supported"
    if "pattern" in schema and known:
        yield "pattern", "ignored beside format"
    if "pattern" in schema or known:
        for keyword in ("minLength", "maxLength"):
            if keyword in schema:
                yield keyword, "ignored beside pattern or format"


def _check_array(schema: Schema) -> Gaps:
    for keyword in NEVER_OF_ARRAYS:
        if keyword in schema:
            yield keyword, NOT_SUPPORTED
    if schema.get("uniqueItems"):
        yield "uniqueItems", NOT_SUPPORTED
    if "items" in schema and "unevaluatedItems" in schema:
        yield "unevaluatedItems", "ignored beside items"


def _check_object(schema: Schema) -> Gaps:
    for keyword in NEVER_OF_OBJECTS:
        if keyword in schema:
            yield keyword, NOT_SUPPORTED
    declared = _as_object(schema.get("properties"))
    patterns = _as_object(schema.get("patternProperties"))
    if any(name not in declared for name in schema.get("required", ()) if isinstance(name, str)):
        yield "required", "names a property that is not declared"
    if patterns and (declared or len(patterns) > 1):
        yield "patternProperties", "supported alone and with one pattern only"
    yield from _check_names(schema, bool(declared), bool(patterns))
    yield from _check_additional(schema, bool(declared), bool(patterns))


def _check_names(schema: Schema, is_declared: bool, has_patterns: bool) -> Gaps:
    if "propertyNames" in schema and (is_declared or has_patterns):
        yield "propertyNames", "ignored beside properties or patternProperties"


def _check_additional(schema: Schema, is_declared: bool, has_patterns: bool) -> Gaps:
    opener = next((name for name in ("additionalProperties", "unevaluatedProperties") if name in schema), None)
    is_open = opener is not None and schema[opener] is not False
    if opener is not None and schema[opener] is False and "propertyNames" in schema and not is_declared:
        yield opener, "false is ignored beside propertyNames"
    if is_open and is_declared:
        yield str(opener), "a declared name that is spelled with escapes passes as another"
    if opener == "additionalProperties" and "unevaluatedProperties" in schema:
        yield "unevaluatedProperties", "ignored beside additionalProperties"
    if schema.get("minProperties") and (is_open or has_patterns or "propertyNames" in schema or not is_declared):
        yield "minProperties", "a name that is written twice counts twice"


def _as_object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


_CHECKS: Mapping[str, Callable[[Schema], Gaps]] = MappingProxyType(
    {"number": _check_number, "string": _check_string, "array": _check_array, "object": _check_object}
)


def children_of(schema: Schema, types: list[str], path: str) -> Iterator[tuple[Any, str]]:
    """Give the subschemas of arrays and objects with their JSON pointers."""
    if "array" in types:
        for keyword in ("items", "unevaluatedItems"):
            if keyword in schema:
                yield schema[keyword], f"{path}/{keyword}"
        members = schema.get("prefixItems")
        for i, member in enumerate(members if isinstance(members, list) else ()):
            yield member, f"{path}/prefixItems/{i}"
    if "object" in types:
        for keyword in ("properties", "patternProperties"):
            for name, member in _as_object(schema.get(keyword)).items():
                yield member, f"{path}/{keyword}/{escape(name)}"
        for keyword in ("additionalProperties", "unevaluatedProperties", "propertyNames"):
            if keyword in schema:
                yield schema[keyword], f"{path}/{keyword}"


def escape(name: str) -> str:
    """Write a name as a part of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")
