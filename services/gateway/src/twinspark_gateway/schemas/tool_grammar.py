"""The constraint that a request's tools put on its reply."""

from typing import Any

from twinspark_gateway.constraint import Constraint
from twinspark_gateway.generation import GrammarKind
from twinspark_gateway.schemas.fields import refuse_at, show
from twinspark_gateway.schemas.formats import write_source
from twinspark_gateway.tools.offer import Tool, ToolChoice, ToolOffer

_NO_ARGUMENTS = {"type": "object", "properties": {}, "additionalProperties": False}


def tool_constraint(offer: ToolOffer) -> Constraint | None:
    """Give the grammar of the calls, None where they are left to the model.

    With "auto" only tools that say `"strict": true` are held to their parameters; a forced call is, unless its tool
    says `"strict": false`. Raises the 400 of a held tool whose arguments cannot be read back.
    """
    is_forced = offer.choice is not ToolChoice.AUTO
    if not is_forced and not any(tool.is_strict for tool in offer.tools):
        return None
    choice: Any = offer.choice.value
    if offer.choice is ToolChoice.NAMED:
        choice = {"type": "function", "function": {"name": offer.tools[0].name}}
    source = {
        "tools": [_describe(tool, is_forced=is_forced) for tool in offer.tools],
        "tool_choice": choice,
        "parallel_tool_calls": offer.parallel,
    }
    positions = [tool.position for tool in offer.tools]
    return Constraint(GrammarKind.TOOL_CALLS, write_source(source), "tools", tool_positions=positions)


def _describe(tool: Tool, *, is_forced: bool) -> dict[str, Any]:
    given = tool.definition["function"]
    function = {"name": tool.name} | {key: given[key] for key in ("parameters", "strict") if given.get(key) is not None}
    if tool.is_strict or (is_forced and given.get("strict") is None):
        # A function that declares no parameters has none.
        function.setdefault("parameters", _NO_ARGUMENTS)
        _check_keys(tool)
    else:
        function["strict"] = False
    return {"type": "function", "function": function}


def _check_keys(tool: Tool) -> None:
    """Refuse names of arguments that the markup does not tell apart: blanks around a key are layout."""
    for key in tool.properties:
        if not key or key != key.strip():
            where = f"tools[{tool.position}].function.parameters"
            raise refuse_at(where, f"must not name a property that is empty or has blanks around it (got {show(key)})")
