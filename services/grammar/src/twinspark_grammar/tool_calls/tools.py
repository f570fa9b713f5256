"""The source of a grammar of tool calls, shaped as in OpenAI's chat API."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator


class ToolsError(Exception):
    """The source does not describe tools; the message names the field."""


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)


class FunctionTool(_Model):
    """One function. Without parameters, or with `strict: false`, any arguments are allowed."""

    name: str = Field(min_length=1, max_length=256, pattern=r"^[^<>\s]+$")
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Tool(_Model):
    """One entry of `tools`."""

    type: Literal["function"]
    function: FunctionTool


class FunctionName(_Model):
    """The name in a named choice."""

    name: str


class NamedChoice(_Model):
    """A choice that asks for one function."""

    type: Literal["function"]
    function: FunctionName


class ToolCallSource(_Model):
    """The whole source."""

    tools: list[Tool] = Field(min_length=1)
    tool_choice: Literal["auto", "required"] | NamedChoice = "auto"
    parallel_tool_calls: bool = True

    @model_validator(mode="after")
    def _check_names(self) -> "ToolCallSource":
        names = [tool.function.name for tool in self.tools]
        if len(set(names)) < len(names):
            raise ValueError("two tools have one name")
        if isinstance(self.tool_choice, NamedChoice) and self.tool_choice.function.name not in names:
            raise ValueError("tool_choice names a tool that is not there")
        return self


def read_tools(value: Any) -> ToolCallSource:
    """Check a parsed source. Raises ToolsError."""
    try:
        return ToolCallSource.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ToolsError(f"{place or 'tools'}: {first['msg'].removeprefix('Value error, ')}") from None
