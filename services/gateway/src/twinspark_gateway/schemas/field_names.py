"""What another API calls the fields of a chat request, so that a refusal by chat's readers names the caller's field."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from twinspark_gateway.errors import ApiError

_QUOTED_PATH = re.compile(r"'([\w.\[\]]+)'")
# What follows it in a refusal is the caller's value.
_VALUE = " (got "


@dataclass(frozen=True, slots=True)
class FieldNames:
    """Rules from the beginning of a path in a chat request to the caller's; the first that fits counts."""

    rules: Sequence[tuple[str, str]]

    def translate(self, path: str) -> str:
        """Give the caller's path of a field: tools[0].input_schema of tools[0].function.parameters."""
        for pattern, replacement in self.rules:
            translated, count = re.subn(rf"^{pattern}(?![\w])", replacement, path)
            if count:
                return translated
        return path

    @contextmanager
    def reword(self) -> Iterator[None]:
        """Translate the paths in a refusal that is raised inside: its `param`, and its text up to the value."""
        try:
            yield
        except ApiError as error:
            text, found, value = error.message.partition(_VALUE)
            error.message = _QUOTED_PATH.sub(lambda match: f"'{self.translate(match[1])}'", text) + found + value
            error.param = self.translate(error.param) if error.param is not None else None
            raise
