"""Following `$ref` within one schema."""

from typing import Any

MOST_STEPS = 32
"""References to references that are followed; a longer chain counts as unresolved."""


def resolve(schema: Any, root: Any) -> Any:
    """Follow `$ref`, and an allOf of one member, to what they stand for; None for what is not found."""
    for _ in range(MOST_STEPS):
        if not isinstance(schema, dict):
            return schema
        if "$ref" in schema:
            schema = find(str(schema["$ref"]), root)
        elif set(schema) & {"allOf", "type", "enum", "const"} == {"allOf"} and _is_single(schema["allOf"]):
            schema = schema["allOf"][0]
        else:
            return schema
    return None


def find(reference: str, root: Any) -> Any:
    """Give what a reference of the form `#/a/b` points to; None where that is nothing."""
    if reference == "#":
        return root
    if not reference.startswith("#/"):
        return None
    found = root
    for part in reference[2:].split("/"):
        if not isinstance(found, dict) or part not in found:
            return None
        found = found[part]
    return found


def _is_single(members: Any) -> bool:
    return isinstance(members, list) and len(members) == 1
