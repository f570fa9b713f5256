"""Reads the form that a request wants of its answer: `response_format`, `structured_outputs`, vLLM's `guided_*`."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from twinspark_gateway.constraint import Constraint
from twinspark_gateway.errors import invalid
from twinspark_gateway.generation import GrammarKind
from twinspark_gateway.schemas.fields import Fields, refuse, refuse_at, show
from twinspark_gateway.schemas.sampling import ReplyParams

Read = Callable[[Any, str], Constraint]


def read_format(fields: Fields) -> Constraint | None:
    """Read the fields; None where any text will do. Raises ApiError."""
    found: dict[str, Constraint] = {}
    wanted = _read_response_format(fields)
    if wanted is not None:
        found["response_format"] = wanted
    outputs = fields.get("structured_outputs")
    if outputs is not None:
        found["structured_outputs"] = _read_structured_outputs(outputs)
    for name, read in _GUIDED.items():
        value = fields.get(name)
        if value is not None:
            found[name] = read(value, name)
    if len(found) > 1:
        first, second, *_ = found
        raise invalid(second, f"'{second}' must not stand beside '{first}'.", code="invalid_value")
    return next(iter(found.values()), None)


def write_source(value: Any) -> str:
    """Give a source as JSON text, its keys in the caller's order."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def check_beside(params: ReplyParams, constraint: Constraint | None) -> None:
    """Refuse what would let a constrained reply go on when it is whole."""
    if constraint is None:
        return
    why = f"does not go with '{constraint.where}': the reply must end where what it asks for is whole"
    if params.ignore_eos:
        raise refuse_at("ignore_eos", why)
    if params.min_tokens:
        raise refuse_at("min_tokens", why)


def _read_response_format(fields: Fields) -> Constraint | None:
    value = fields.mapping("response_format")
    if fields.get("response_format") is None:
        return None
    kind = value.get("type")
    if kind == "text":
        return None
    if kind == "json_object":
        return _json_object("response_format")
    if kind != "json_schema":
        raise refuse_at("response_format.type", f'must be "text", "json_object" or "json_schema" (got {show(kind)})')
    where = "response_format.json_schema"
    given = value.get("json_schema")
    if not isinstance(given, dict):
        raise refuse_at(where, f"must be an object (got {show(given)})")
    inner = Fields(given, where)
    inner.text("name")
    inner.text("description")
    return _json_schema(given.get("schema"), f"{where}.schema", strict=inner.boolean("strict", False))


def _read_structured_outputs(value: Any) -> Constraint:
    if not isinstance(value, dict):
        raise refuse("structured_outputs", value, "an object")
    given = {name: value[name] for name in _OUTPUTS if value.get(name) is not None}
    if given.get("json_object") is False:
        del given["json_object"]
    if len(given) != 1:
        raise refuse_at("structured_outputs", f"must hold exactly one of {', '.join(_OUTPUTS)}")
    ((name, inner),) = given.items()
    return _OUTPUTS[name](inner, f"structured_outputs.{name}")


def _json_object(where: str) -> Constraint:
    return Constraint(GrammarKind.JSON_OBJECT, "", where)


def _read_json_object(value: Any, where: str) -> Constraint:
    if value is not True:
        raise refuse_at(where, f"must be a boolean (got {show(value)})")
    return _json_object(where)


def _json_schema(schema: Any, where: str, *, strict: bool) -> Constraint:
    if not isinstance(schema, dict):
        raise refuse_at(where, f"must be a JSON schema, an object (got {show(schema)})")
    return Constraint(GrammarKind.JSON_SCHEMA, write_source(schema), where, strict, schema)


def _read_schema(value: Any, where: str) -> Constraint:
    """Read a schema that may come as JSON text."""
    schema = value
    if isinstance(value, str):
        try:
            schema = json.loads(value)
        except (ValueError, RecursionError):
            schema = value
    return _json_schema(schema, where, strict=False)


def _read_text(kind: GrammarKind) -> Read:
    def read(value: Any, where: str) -> Constraint:
        if not isinstance(value, str) or not value:
            raise refuse_at(where, f"must be a non-empty string (got {show(value)})")
        return Constraint(kind, value, where)

    return read


def _read_choice(value: Any, where: str) -> Constraint:
    if not isinstance(value, list) or not value or not all(isinstance(text, str) for text in value):
        raise refuse_at(where, f"must be a non-empty list of strings (got {show(value)})")
    return Constraint(GrammarKind.CHOICE, write_source(value), where)


_read_regex, _read_grammar = _read_text(GrammarKind.REGEX), _read_text(GrammarKind.EBNF)
_OUTPUTS: Mapping[str, Read] = {
    "json": _read_schema,
    "json_object": _read_json_object,
    "regex": _read_regex,
    "choice": _read_choice,
    "grammar": _read_grammar,
}
_GUIDED: Mapping[str, Read] = {
    "guided_json": _read_schema,
    "guided_regex": _read_regex,
    "guided_choice": _read_choice,
    "guided_grammar": _read_grammar,
}
