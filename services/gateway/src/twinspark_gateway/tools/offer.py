"""The tools that one request offers, and which of them a written name means."""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


class ToolChoice(enum.Enum):
    """Who decides whether a reply calls a tool."""

    # The model.
    AUTO = "auto"
    # The request: at least one call.
    REQUIRED = "required"
    # The request: one call of the only tool that is offered, and nothing else.
    NAMED = "named"


@dataclass(frozen=True, slots=True)
class Tool:
    """One function that the model may call."""

    name: str
    # JSON schema of its arguments; empty where it declares none.
    parameters: Mapping[str, Any]
    # As the request has it, for the template.
    definition: Mapping[str, Any]
    # Its index in the request.
    position: int = 0

    @property
    def is_strict(self) -> bool:
        """Whether the request wants calls held to the parameters, and every keyword of them enforced."""
        return self.definition["function"].get("strict") is True

    @property
    def properties(self) -> Mapping[str, Any]:
        """Schemas of the declared arguments by name."""
        properties = self.parameters.get("properties")
        return properties if isinstance(properties, Mapping) else {}

    @property
    def required(self) -> frozenset[str]:
        """Names of the arguments that a call must have."""
        required = self.parameters.get("required")
        return frozenset(key for key in required if isinstance(key, str)) if isinstance(required, list) else frozenset()


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """The tools of a request; without any, replies are not looked through for calls."""

    tools: Sequence[Tool] = ()
    # False: only the first call of a reply counts.
    parallel: bool = True
    choice: ToolChoice = ToolChoice.AUTO

    def match(self, written: str) -> Tool | None:
        """Give the tool of that name, else the only one whose name differs in case alone."""
        exact = [tool for tool in self.tools if tool.name == written]
        alike = exact or [tool for tool in self.tools if written.isascii() and tool.name.lower() == written.lower()]
        return alike[0] if len(alike) == 1 else None

    def match_with_key(self, written: str) -> tuple[Tool, str] | None:
        """Read a name, blanks and a declared key: what stands there when the key's opening tag was left out."""
        parts = written.split(None, 1)
        tool = self.match(parts[0]) if len(parts) == 2 else None
        key = parts[-1].strip() if parts else ""
        return (tool, key) if tool is not None and key in tool.properties else None

    def may_begin(self, written: str) -> bool:
        """Say whether text after it could still make `written` a name, or a name with a key, of this offer."""
        begun = written.lstrip()
        return any(_may_begin(tool, begun) for tool in self.tools)


def _may_begin(tool: Tool, begun: str) -> bool:
    head, rest = begun[: len(tool.name)], begun[len(tool.name) :]
    if not head.isascii() or not tool.name.lower().startswith(head.lower()):
        return False
    key = rest.lstrip()
    if not key:
        return True
    return rest[0].isspace() and any(name.startswith(key) or name == key.rstrip() for name in tool.properties)
