"""The table of docs/grammar.md: each keyword that constrains a value, where masks enforce it, and where not."""

from dataclasses import dataclass

ALWAYS = "always"
NEVER = "never"


@dataclass(frozen=True, slots=True)
class Row:
    """`gap`: what happens where it is not enforced, or how its meaning is narrowed."""

    keywords: tuple[str, ...]
    enforced: str
    gap: str = ""


ROWS = (
    Row(
        ("type",),
        "always, and beside `const` and `enum` where it agrees with them",
        "ignored beside $ref, anyOf, oneOf",
    ),
    Row(("const", "enum"), ALWAYS, "all other keywords beside them that could exclude a value are ignored"),
    Row(("$ref",), "`#` and `#/...` in the same schema, recursion too", "other references allow anything"),
    Row(("$dynamicRef", "$recursiveRef"), NEVER, "ignored"),
    Row(("anyOf",), ALWAYS, "keywords beside it are ignored"),
    Row(
        ("oneOf",),
        "where types, values or a required tag tell the branches apart",
        "else it acts as anyOf, which strict accepts; keywords beside it are ignored",
    ),
    Row(("allOf",), "with one member", "with more it allows anything; keywords beside it are ignored"),
    Row(("not", "if", "dependencies"), NEVER, "ignored (`then` and `else` with `if`)"),
    Row(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), ALWAYS),
    Row(
        ("multipleOf",),
        "for integers, without bounds or between two near ones",
        "ignored for numbers, and beside one bound or far ones",
    ),
    Row(("minLength", "maxLength"), "without `pattern` and known `format`", "such strings hold no escapes"),
    Row(
        ("pattern",),
        "without known `format`; the whole string must match",
        "such strings hold no escapes; refused where it could write a quote, a backslash or a control character",
    ),
    Row(("format",), "the formats listed below", "others are ignored"),
    Row(("items", "prefixItems", "minItems", "maxItems"), "always; all of `prefixItems` must be there"),
    Row(("unevaluatedItems",), "without `items`", "ignored beside `items`"),
    Row(("additionalItems", "contains", "minContains", "maxContains", "uniqueItems"), NEVER, "ignored"),
    Row(("properties",), "always, in the order of the schema; others are not allowed unless the schema says so"),
    Row(("required",), "for declared properties", "other names are ignored"),
    Row(
        ("additionalProperties", "unevaluatedProperties"),
        "`false` (also when absent), and without `properties`",
        "beside `properties` a declared name that is spelled with escapes passes as another; `false` is ignored beside "
        "`propertyNames`",
    ),
    Row(("patternProperties",), "one pattern, without `properties`", "else a name may be held to the wrong schema"),
    Row(("propertyNames",), "alone", "ignored beside `properties` and `patternProperties`"),
    Row(("minProperties",), "where only declared names are allowed", "else a name that is written twice counts twice"),
    Row(("maxProperties",), ALWAYS),
    Row(("dependentRequired", "dependentSchemas"), NEVER, "ignored"),
)


def render_rows() -> str:
    """Give the table as Markdown."""
    lines = ["| keyword | enforced | otherwise |", "| --- | --- | --- |"]
    for row in ROWS:
        names = ", ".join(f"`{name}`" for name in row.keywords)
        lines.append(f"| {names} | {row.enforced} | {row.gap} |")
    return "\n".join(lines) + "\n"
