"""Random JSON schemas for Hypothesis: any that the checks let through, and pairs of a schema and a value of it."""

from typing import Any

from hypothesis import strategies as st

NAMES = st.sampled_from(["a", "b", "name", "x y", "ünï", 'q"', "back\\slash", "n/m"])
WORDS = st.text(alphabet=st.sampled_from('ab "\\\n\té漢/{<'), max_size=6)
SMALL = st.integers(-40, 40)
SCALARS = st.one_of(st.none(), st.booleans(), SMALL, WORDS)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(NAMES, inner, max_size=2)),
    max_leaves=3,
)
PATTERNS = st.sampled_from(["^a+$", "[a-c]{2,3}", "^(x|yz)$", "\\d{2}", "^[^a]{1,3}$"])
FORMATS = st.sampled_from(["date", "time", "date-time", "uuid", "ipv4", "email", "unknown"])


def optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Give dictionaries that hold some of the fields."""
    return st.fixed_dictionaries({}, optional=dict(fields))


def _typed(name: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return optional(**fields).map(lambda given: {"type": name, **given})


def leaves() -> st.SearchStrategy[dict[str, Any]]:
    """Give schemas without subschemas."""
    bounds = {"minimum": SMALL, "maximum": SMALL, "exclusiveMinimum": SMALL, "exclusiveMaximum": SMALL}
    multiple = st.sampled_from([1, 2, 3, 7])
    return st.one_of(
        _typed("integer", multipleOf=multiple, **bounds),
        _typed("number", multipleOf=multiple, **bounds),
        _typed("string", minLength=st.integers(0, 3), maxLength=st.integers(0, 6), pattern=PATTERNS, format=FORMATS),
        st.sampled_from([{"type": "boolean"}, {"type": "null"}, {}, {"type": ["string", "null"]}]),
        st.builds(lambda value: {"const": value}, VALUES),
        st.builds(lambda values: {"enum": values}, st.lists(VALUES, min_size=1, max_size=3)),
        st.builds(lambda values: {"enum": values, "type": "string"}, st.lists(SCALARS, min_size=1, max_size=3)),
    )


def _arrays(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return _typed(
        "array",
        items=inner,
        prefixItems=st.lists(inner, max_size=2),
        minItems=st.integers(0, 2),
        maxItems=st.integers(0, 4),
        uniqueItems=st.booleans(),
        contains=inner,
    )


def _objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return _typed(
        "object",
        properties=st.dictionaries(NAMES, inner, max_size=3),
        required=st.lists(NAMES, max_size=2, unique=True),
        additionalProperties=st.one_of(st.booleans(), inner),
        patternProperties=st.dictionaries(PATTERNS, inner, max_size=2),
        propertyNames=st.sampled_from([{"pattern": "^[a-z]+$"}, {"enum": ["a", "b"]}]),
        minProperties=st.integers(0, 2),
        maxProperties=st.integers(0, 3),
        dependentRequired=st.just({"a": ["b"]}),
    )


def _unions(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    several = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        st.builds(lambda key, members: {key: members}, st.sampled_from(["anyOf", "oneOf", "allOf"]), several),
        st.builds(lambda members, extra: {**extra, "anyOf": members}, several, inner),
        st.builds(lambda schema, denied: {**schema, "not": denied}, inner, inner),
    )


def schemas() -> st.SearchStrategy[dict[str, Any]]:
    """Give schemas of all kinds; many ask for what masks do not enforce, or for nothing that exists."""
    return st.recursive(
        leaves(), lambda inner: st.one_of(_arrays(inner), _objects(inner), _unions(inner)), max_leaves=5
    )


@st.composite
def schema_and_value(draw: st.DrawFn, depth: int = 2) -> tuple[dict[str, Any], Any]:
    """Give a schema and a value that it allows, with properties in the schema's order."""
    kinds = ["integer", "string", "boolean", "null", "enum", "bounded"] + ["array", "object", "anyOf"] * (depth > 0)
    match draw(st.sampled_from(kinds)):
        case "integer":
            return {"type": "integer"}, draw(st.integers(-(10**9), 10**9))
        case "string":
            return {"type": "string"}, draw(st.text(max_size=8))
        case "boolean":
            return {"type": "boolean"}, draw(st.booleans())
        case "null":
            return {"type": "null"}, None
        case "enum":
            values = draw(st.lists(SCALARS, min_size=1, max_size=3))  # arrays and objects are held to one spelling
            return {"enum": values}, draw(st.sampled_from(values))
        case "bounded":
            low, value, high = sorted(draw(st.tuples(SMALL, SMALL, SMALL)))
            return {"type": "integer", "minimum": low, "maximum": high}, value
        case "array":
            item, first = draw(schema_and_value(depth - 1))
            count = draw(st.integers(0, 2))
            return {"type": "array", "items": item, "minItems": count}, [first] * draw(st.integers(count, 3))
        case "anyOf":
            (one, value), (other, _) = draw(schema_and_value(depth - 1)), draw(schema_and_value(depth - 1))
            return {"anyOf": draw(st.permutations([one, other]))}, value
    members = draw(st.dictionaries(NAMES, schema_and_value(depth - 1), max_size=3))
    required = [name for name in members if draw(st.booleans())]
    chosen = {name: entry for name, (_, entry) in members.items() if name in required or draw(st.booleans())}
    return {"type": "object", "properties": {name: s for name, (s, _) in members.items()}, "required": required}, chosen
