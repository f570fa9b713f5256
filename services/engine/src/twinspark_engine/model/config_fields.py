"""Typed reading of config.json: every value is checked, and a refusal names the field and the value."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from twinspark_engine.model.checkpoint_error import CheckpointError, CheckpointReason


def read_json(path: Path) -> dict[str, object]:
    """The JSON object in a file; CONFIG_UNREADABLE if there is none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(CheckpointReason.CONFIG_UNREADABLE, f"{path.name}: cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise CheckpointError(CheckpointReason.CONFIG_UNREADABLE, f"{path.name}: is not a JSON object")
    return content


@dataclass(frozen=True)
class ConfigFields:
    """One object of config.json, with the path that its fields have in messages ("text_config.")."""

    values: Mapping[str, object]
    prefix: str
    reason: CheckpointReason = CheckpointReason.CONFIG_UNSUPPORTED

    def refuse(self, name: str, value: object, expected: str) -> NoReturn:
        """Raises CheckpointError for the field."""
        message = f"{self.prefix}{name} is {json.dumps(value, default=str)}: {expected}"
        raise CheckpointError(self.reason, message)

    def require(self, name: str) -> object:
        """The value of a field that must be there (defaults differ between spellings, so none is assumed)."""
        if name not in self.values:
            message = f"{self.prefix}{name} is missing"
            raise CheckpointError(self.reason, message)
        return self.values[name]

    def integer(self, name: str, minimum: int = 1) -> int:
        """A whole number of at least the minimum."""
        value = self.require(name)
        if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
            self.refuse(name, value, f"a whole number of at least {minimum} is needed")
        return value

    def number(self, name: str) -> float:
        """A finite number."""
        value = self.require(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            self.refuse(name, value, "a finite number is needed")
        return float(value)

    def positive(self, name: str) -> float:
        """A finite number above 0."""
        value = self.number(name)
        if value <= 0:
            self.refuse(name, value, "a number above 0 is needed")
        return value

    def texts(self, name: str) -> list[str]:
        """A list of strings."""
        value = self.require(name)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.refuse(name, value, "a list of strings is needed")
        return list(value)

    def section(self, name: str) -> "ConfigFields":
        """A nested object."""
        value = self.require(name)
        if not isinstance(value, dict):
            self.refuse(name, value, "an object is needed")
        return ConfigFields(value, f"{self.prefix}{name}.", self.reason)

    def only(self, name: str, supported: object, required: bool = False) -> None:
        """Refuses any other value than the supported one; an absent field passes unless it is required."""
        if name not in self.values and not required:
            return
        value = self.require(name)
        if value != supported or isinstance(value, bool) != isinstance(supported, bool):
            self.refuse(name, value, f"only {json.dumps(supported)} is supported")
