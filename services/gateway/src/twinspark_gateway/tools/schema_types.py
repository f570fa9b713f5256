"""What a JSON schema says about the type of a value, flattened: unions, references and enumerations in one list."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

TYPES = ("string", "integer", "number", "boolean", "null", "array", "object")
_MAX_DEPTH = 16


@dataclass(slots=True)
class ValueTypes:
    """The values that a schema lets through, in the order in which it names them; without any entry, every value."""

    constants: list[Any] = field(default_factory=list)
    types: list[str] = field(default_factory=list)


def read_types(schema: Any, root: Mapping[str, Any]) -> ValueTypes:
    """Flatten the schema of one argument; references are looked up in root. What cannot be read lets all through."""
    found = ValueTypes()
    _Collector(root, found).collect(schema, 0)
    return found


@dataclass(slots=True)
class _Collector:
    root: Mapping[str, Any]
    found: ValueTypes
    # References may be circular, so each is followed once.
    followed: set[str] = field(default_factory=set)

    def collect(self, schema: Any, depth: int) -> None:
        if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
            return
        if "$ref" in schema:
            self._follow(schema["$ref"], depth)
        elif "const" in schema:
            self.found.constants.append(schema["const"])
        elif isinstance(schema.get("enum"), list):
            self.found.constants += schema["enum"]
        elif "type" in schema:
            kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
            self.found.types += [kind for kind in kinds if kind in TYPES]
        else:
            for member in _members(schema):
                self.collect(member, depth + 1)

    def _follow(self, reference: Any, depth: int) -> None:
        if isinstance(reference, str) and reference not in self.followed:
            self.followed.add(reference)
            self.collect(_resolve(reference, self.root), depth + 1)


def _members(schema: Mapping[str, Any]) -> list[Any]:
    for union in ("anyOf", "oneOf"):
        if isinstance(schema.get(union), list):
            return list(schema[union])
    parts = schema.get("allOf")
    # All of them hold, so any one that names a type will do.
    typed = [part for part in parts if isinstance(part, Mapping) and part] if isinstance(parts, list) else []
    return typed[:1]


def _resolve(reference: str, root: Mapping[str, Any]) -> Any:
    """Give what a reference into the same document points at, or None."""
    if not reference.startswith("#"):
        return None
    place: Any = root
    for part in reference[1:].split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        place = place.get(key) if isinstance(place, Mapping) else None
    return place
