"""Renders conversations with a served folder's chat template, where no server does it.

The same environment as Transformers gives to templates: sandboxed, blocks trimmed, `tojson` without escapes.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from jinja2 import Template
from jinja2.exceptions import TemplateError
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from twinspark_demo.evaluation.prompt import Message

FILE = "chat_template.jinja"
DEMO_FOLDER = Path(__file__).parents[3] / "checkpoint"
"""The published model of this repository."""


def load_template(folder: Path) -> Template:
    """Compile the folder's template. Raises OSError where there is none."""
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise_exception
    return environment.from_string((folder / FILE).read_text(encoding="utf-8"))


def render(template: Template, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = ()) -> str:
    """The prompt's text: it ends where the assistant's reply starts, inside its reasoning."""
    return template.render(
        messages=messages, tools=list(tools) or None, add_generation_prompt=True, clear_thinking=False
    )


def _to_json(value: Any, ensure_ascii: bool = False, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)


def _raise_exception(message: str) -> NoReturn:
    raise TemplateError(message)
