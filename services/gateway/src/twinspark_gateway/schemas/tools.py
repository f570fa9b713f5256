"""Reads `tools`, `tool_choice` and `parallel_tool_calls` of a chat request: which tools are offered, and how."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from twinspark_gateway.errors import invalid
from twinspark_gateway.schemas.fields import Fields, refuse, refuse_at, show
from twinspark_gateway.tools.offer import Tool, ToolChoice, ToolOffer

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def read_tool_offer(fields: Fields) -> ToolOffer:
    """Read the fields. Raises a 400 that names the field; its text has the path inside it."""
    tools = _read_tools(fields.get("tools"))
    parallel = fields.boolean("parallel_tool_calls", True)
    offered, choice = _read_choice(fields.get("tool_choice"), tools)
    return ToolOffer(offered, parallel and choice is not ToolChoice.NAMED, choice)


def translate_tools(tools: Any, translate: Callable[[Any, str], Any]) -> Any:
    """Another API's tools as chat's, by `translate(tool, where)`; what is no list stays: chat's reader refuses it."""
    if not isinstance(tools, list):
        return tools
    return [translate(tool, f"tools[{i}]") for i, tool in enumerate(tools)]


def _read_tools(value: Any) -> tuple[Tool, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise refuse("tools", value, "a list of tools")
    tools = tuple(_read_tool(tool, i) for i, tool in enumerate(value))
    names = [tool.name for tool in tools]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise refuse_at(f"tools[{i}].function.name", f"is the name of another tool ({show(name)})")
    return tools


def _read_tool(tool: Any, position: int) -> Tool:
    where = f"tools[{position}]"
    if not isinstance(tool, dict):
        raise refuse_at(where, f"must be an object (got {show(tool)})")
    kind = tool.get("type", "function")
    if kind != "function":
        raise refuse_at(f"{where}.type", f'must be "function" (got {show(kind)})')
    function = tool.get("function")
    if not isinstance(function, dict):
        raise refuse_at(f"{where}.function", f"must be an object (got {show(function)})")
    name = function.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        expected = "must be 1 to 64 letters, digits, dots, underscores or hyphens"
        raise refuse_at(f"{where}.function.name", f"{expected} (got {show(name)})")
    for key, kind, expected in (("description", str, "a string"), ("strict", bool, "a boolean")):
        if not isinstance(function.get(key), kind | None):
            raise refuse_at(f"{where}.function.{key}", f"must be {expected} (got {show(function[key])})")
    return Tool(name, _read_parameters(function.get("parameters"), f"{where}.function.parameters"), tool, position)


def _read_parameters(parameters: Any, where: str) -> Mapping[str, Any]:
    if parameters is None:
        return {}
    if not isinstance(parameters, dict):
        raise refuse_at(where, f"must be a JSON schema, an object (got {show(parameters)})")
    kinds = parameters.get("type", "object")
    if "object" not in (kinds if isinstance(kinds, list) else [kinds]):
        raise refuse_at(f"{where}.type", f'must be "object" (got {show(kinds)})')
    return parameters


def _read_choice(value: Any, tools: Sequence[Tool]) -> tuple[Sequence[Tool], ToolChoice]:
    """Give the tools that are offered to the model, and whether it must call one."""
    if value is None or value == "auto":
        return tools, ToolChoice.AUTO
    if value == "none":
        return (), ToolChoice.AUTO
    if value == "required":
        if not tools:
            raise invalid("tool_choice", "'tool_choice': \"required\" needs 'tools'.", code="invalid_value")
        return tools, ToolChoice.REQUIRED
    if not isinstance(value, dict):
        raise refuse("tool_choice", value, '"none", "auto", "required", or an object that names tools')
    match value.get("type"):
        case "function":
            return (_find(tools, value, "tool_choice"),), ToolChoice.NAMED
        case "allowed_tools":
            return _read_allowed(value.get("allowed_tools"), tools)
        case kind:
            raise refuse_at("tool_choice.type", f'must be "function" or "allowed_tools" (got {show(kind)})')


def _read_allowed(allowed: Any, tools: Sequence[Tool]) -> tuple[Sequence[Tool], ToolChoice]:
    where = "tool_choice.allowed_tools"
    if not isinstance(allowed, dict):
        raise refuse_at(where, f"must be an object (got {show(allowed)})")
    mode, named = allowed.get("mode", "auto"), allowed.get("tools")
    if mode not in ("auto", "required"):
        raise refuse_at(f"{where}.mode", f'must be "auto" or "required" (got {show(mode)})')
    if not isinstance(named, list) or not named:
        raise refuse_at(f"{where}.tools", f"must be a non-empty list of tools (got {show(named)})")
    names = {_find(tools, entry, f"{where}.tools[{i}]").name for i, entry in enumerate(named)}
    offered = tuple(tool for tool in tools if tool.name in names)
    return offered, ToolChoice(mode)


def _find(tools: Sequence[Tool], entry: Any, where: str) -> Tool:
    """Give the tool that {"type": "function", "function": {"name": ...}} names."""
    function = entry.get("function") if isinstance(entry, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(name, str) or not name:
        raise refuse_at(f"{where}.function.name", f"must be the name of a tool (got {show(name)})")
    found = next((tool for tool in tools if tool.name == name), None)
    if found is None:
        raise refuse_at(f"{where}.function.name", f"is {show(name)}, which the request does not offer")
    return found
