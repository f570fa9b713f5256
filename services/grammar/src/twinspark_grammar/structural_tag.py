"""Structural tags: naming added tokens by id, and finding the JSON schemas inside."""

from collections.abc import Iterator, Mapping
from typing import Any

from twinspark_grammar.schema.typed import escape

TOKEN_LISTS = ("trigger_tokens", "exclude_tokens")


class UnknownTokenError(Exception):
    """A tag names a token that the tokenizer does not have as an added token."""


def bind_tokens(tag: Any, added: Mapping[str, int]) -> Any:
    """Copy a structural tag with the ids of the added tokens that it names. Raises UnknownTokenError."""
    if isinstance(tag, list):
        return [bind_tokens(entry, added) for entry in tag]
    if not isinstance(tag, dict):
        return tag
    bound: dict[str, Any] = {}
    for name, value in tag.items():
        if name == "json_schema":
            bound[name] = value
        elif name == "token":
            bound[name] = _id_of(value, added)
        elif name in TOKEN_LISTS and isinstance(value, list):
            bound[name] = [_id_of(entry, added) for entry in value]
        elif name == "rules" and tag.get("type") == "token_dispatch" and isinstance(value, list):
            bound[name] = [_bind_rule(rule, added) for rule in value]
        else:
            bound[name] = bind_tokens(value, added)
    return bound


def _bind_rule(rule: Any, added: Mapping[str, int]) -> Any:
    if not isinstance(rule, list) or len(rule) != 2:
        return rule
    return [_id_of(rule[0], added), bind_tokens(rule[1], added)]


def _id_of(token: Any, added: Mapping[str, int]) -> Any:
    if not isinstance(token, str):
        return token
    if token not in added:
        raise UnknownTokenError(f"{token!r} is not an added token of this tokenizer")
    return added[token]


def find_schemas(tag: Any, path: str = "") -> Iterator[tuple[Any, str]]:
    """Give the JSON schemas in a structural tag, with their JSON pointers."""
    if isinstance(tag, list):
        for i, entry in enumerate(tag):
            yield from find_schemas(entry, f"{path}/{i}")
    elif isinstance(tag, dict):
        for name, value in tag.items():
            place = f"{path}/{escape(name)}"
            if name == "json_schema":
                yield value, place
            else:
                yield from find_schemas(value, place)
