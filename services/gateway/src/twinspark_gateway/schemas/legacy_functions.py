"""Legacy `functions` and `function_call`: read as the `tools` and `tool_choice` that replaced them.

The reply is that to `tools`: calls stand in `tool_calls`.
"""

from typing import Any

from twinspark_gateway.errors import invalid
from twinspark_gateway.schemas.field_names import FieldNames
from twinspark_gateway.schemas.fields import Fields, refuse
from twinspark_gateway.schemas.tools import read_tool_offer
from twinspark_gateway.tools.offer import ToolOffer

_NAMES = FieldNames(
    (
        (r"tools(\[\d+\])\.function", r"functions\1"),
        (r"tools", "functions"),
        (r"tool_choice\.function", "function_call"),
        (r"tool_choice", "function_call"),
    )
)


def read_any_tool_offer(fields: Fields) -> ToolOffer:
    """Read what is offered under either pair of names. Raises a 400 that uses the caller's."""
    functions, call = fields.get("functions"), fields.get("function_call")
    if functions is not None and not isinstance(functions, list):
        raise refuse("functions", functions, "a list of functions")
    if call is not None and call not in ("none", "auto") and not isinstance(call, dict):
        raise refuse("function_call", call, '"none", "auto", or an object that names a function')
    if not functions and call is None:
        return read_tool_offer(fields)
    for name in ("tools", "tool_choice"):
        if fields.get(name) not in (None, []):
            legacy = "functions" if functions else "function_call"
            raise invalid(
                legacy, f"'{legacy}' must not stand beside '{name}', which replaced it.", code="invalid_value"
            )
    with _NAMES.reword():
        return read_tool_offer(Fields(_translate(functions or [], call, fields.get("parallel_tool_calls"))))


def _translate(functions: list[Any], call: Any, parallel: Any) -> dict[str, Any]:
    choice = {"type": "function", "function": {"name": call.get("name")}} if isinstance(call, dict) else call
    tools = [{"type": "function", "function": function} for function in functions]
    return {"tools": tools, "tool_choice": choice, "parallel_tool_calls": parallel}
