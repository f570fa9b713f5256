"""The switches for thinking: which field wins, and what the template is told."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from twinspark_gateway.errors import invalid
from twinspark_gateway.prompt.template import RESERVED_KWARGS
from twinspark_gateway.schemas.fields import Fields, refuse

# What a request may name, and the template's word for it; "none" switches thinking off.
EFFORTS: Mapping[str, str | None] = {
    "none": None,
    "minimal": "low",
    "low": "low",
    "medium": "high",
    "high": "high",
    "xhigh": "max",
    "max": "max",
}
_BUDGETS = ("thinking_budget", "reasoning_budget", "thinking_token_budget")
_OWN_KWARGS = frozenset({"enable_thinking", "thinking", "reasoning_effort"})


@dataclass(frozen=True, slots=True)
class Thinking:
    """What a chat request says about its reasoning."""

    enabled: bool
    # low, high or max; None leaves it to the template.
    effort: str | None
    # Number of the reply's token at which the reasoning is closed; 0: never.
    budget: int
    # Other variables for the template; clear_thinking is always among them.
    template_kwargs: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ThinkingDefaults:
    """What a request gets that says nothing."""

    # low, high or max; empty leaves it to the template.
    effort: str = ""
    # As in Thinking.
    budget: int = 0


def read_thinking(fields: Fields, defaults: ThinkingDefaults) -> Thinking:
    """Read the switches. An explicit switch beats effort "none"; the top-level effort beats the template's."""
    kwargs = fields.inner("chat_template_kwargs")
    passed = _passed_kwargs(fields.mapping("chat_template_kwargs"))
    effort = _read_effort(fields)
    if effort is None:
        effort = _read_effort(kwargs)
    explicit = _read_switch(fields, kwargs)
    enabled = explicit if explicit is not None else effort != "none"
    word = EFFORTS[effort] if effort is not None else defaults.effort or None
    return Thinking(enabled, word if enabled else None, _read_budget(fields) or defaults.budget, passed)


def _passed_kwargs(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    reserved = sorted(RESERVED_KWARGS & kwargs.keys())
    if reserved:
        message = f"'chat_template_kwargs' must not hold '{reserved[0]}'."
        raise invalid(f"chat_template_kwargs.{reserved[0]}", message, code="invalid_value")
    passed = {key: value for key, value in kwargs.items() if key not in _OWN_KWARGS}
    # Without it the prompt of a longer conversation would no longer start with the prompt of a shorter one.
    passed.setdefault("clear_thinking", False)
    return passed


def _read_effort(fields: Fields) -> str | None:
    value = fields.text("reasoning_effort")
    if value is not None and value not in EFFORTS:
        raise refuse(fields.path("reasoning_effort"), value, f"one of {', '.join(EFFORTS)}")
    return value


def _read_switch(fields: Fields, kwargs: Fields) -> bool | None:
    """Give the explicit switch, or None if there is none.

    Top-level `thinking` is a field of this API, so that a value without meaning is refused. The template's variable of
    that name is read only without enable_thinking, and other values of it are ignored, as templates do.
    """
    top_level = _read_top_level(fields.get("thinking"))
    if kwargs.get("enable_thinking") is not None:
        return kwargs.boolean("enable_thinking", True)
    in_kwargs = _switch_of(kwargs.get("thinking"))
    return top_level if in_kwargs is None else in_kwargs


def _read_top_level(value: Any) -> bool | None:
    if value is None:
        return None
    switch = _switch_of(value)
    if switch is None:
        raise refuse("thinking", value, 'a boolean, {"type": "enabled"} or {"type": "disabled"}')
    return switch


def _read_budget(fields: Fields) -> int:
    """Read the budget under each of its names; the first one that is given counts. 0 asks for the default."""
    values = [fields.integer(name, 0) for name in _BUDGETS]
    thinking = fields.get("thinking")
    if isinstance(thinking, dict):
        values.append(fields.inner("thinking").integer("budget_tokens", 0))
    return next((value for value in values if value is not None), 0)


def _switch_of(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    kind = value.get("type") if isinstance(value, dict) else None
    return {"enabled": True, "disabled": False}.get(kind) if isinstance(kind, str) else None
