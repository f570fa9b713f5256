"""The keywords of JSON Schema that constrain a value, by the type to which they apply. All others say nothing here."""

from types import MappingProxyType

GENERIC = frozenset(
    "$ref $dynamicRef $recursiveRef const enum anyOf oneOf allOf type not if dependencies".split()  # noqa: SIM905
)
"""Apply to any value. `then` and `else` say nothing without `if`, which is reported for all three."""

_NUMERIC = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"))
BY_TYPE = MappingProxyType(
    {
        "integer": _NUMERIC,
        "number": _NUMERIC,
        "string": frozenset(("minLength", "maxLength", "pattern", "format")),
        "array": frozenset(
            (
                "items",
                "prefixItems",
                "additionalItems",
                "unevaluatedItems",
                "contains",
                "minContains",
                "maxContains",
                "minItems",
                "maxItems",
                "uniqueItems",
            )
        ),
        "object": frozenset(
            (
                "properties",
                "required",
                "additionalProperties",
                "patternProperties",
                "unevaluatedProperties",
                "propertyNames",
                "minProperties",
                "maxProperties",
                "dependentRequired",
                "dependentSchemas",
            )
        ),
        "boolean": frozenset[str](),
        "null": frozenset[str](),
    }
)
CONSTRAINTS = GENERIC.union(*BY_TYPE.values())

FORMATS = frozenset(
    (
        "date",
        "date-time",
        "duration",
        "email",
        "hostname",
        "ipv4",
        "ipv6",
        "json-pointer",
        "relative-json-pointer",
        "time",
        "uri",
        "uri-reference",
        "uri-template",
        "uuid",
    )
)
"""Formats that masks enforce."""


def type_of(value: object) -> str:
    """Give the JSON type of a value: integer for a whole number, number for another."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def has_type(value: object, types: object) -> bool:
    """Say whether a value has the type, or one of the types, that a schema names."""
    names = types if isinstance(types, list) else [types]
    own = type_of(value)
    return own in names or (own == "integer" and "number" in names)
