"""The constraint that a request's tools put on its reply."""

from typing import Any

from twinspark_gateway.constraint import Constraint
from twinspark_gateway.generation import GrammarKind
from twinspark_gateway.schemas.formats import write_source
from twinspark_gateway.tools.offer import Tool, ToolChoice, ToolOffer


def tool_constraint(offer: ToolOffer) -> Constraint | None:
    """Give the grammar of the calls, None where they are left to the model.

    With "auto" only tools that say `"strict": true` are held to their parameters; a forced call is, unless its tool
    says `"strict": false`.
    """
    is_forced = offer.choice is not ToolChoice.AUTO
    if not is_forced and not any(tool.is_strict for tool in offer.tools):
        return None
    choice: Any = offer.choice.value
    if offer.choice is ToolChoice.NAMED:
        choice = {"type": "function", "function": {"name": offer.tools[0].name}}
    source = {
        "tools": [_describe(tool, strict_only=not is_forced) for tool in offer.tools],
        "tool_choice": choice,
        "parallel_tool_calls": offer.parallel,
    }
    positions = [tool.position for tool in offer.tools]
    return Constraint(GrammarKind.TOOL_CALLS, write_source(source, "tools"), "tools", tool_positions=positions)


def _describe(tool: Tool, *, strict_only: bool) -> dict[str, Any]:
    given = tool.definition["function"]
    function = {"name": tool.name} | {key: given[key] for key in ("parameters", "strict") if given.get(key) is not None}
    if strict_only and not tool.is_strict:
        function["strict"] = False
    return {"type": "function", "function": function}
