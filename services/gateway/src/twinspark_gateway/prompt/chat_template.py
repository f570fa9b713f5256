"""Finds the checkpoint's chat template: chat_template.jinja, else the entry in tokenizer_config.json."""

import json
from pathlib import Path
from typing import Any

TEMPLATE_FILE = "chat_template.jinja"
CONFIG_FILE = "tokenizer_config.json"
DEFAULT_NAME = "default"


class ChatTemplateError(Exception):
    """The folder's template cannot be read; the message names the file."""


def load_chat_template(folder: Path) -> str | None:
    """Give the template's source, or None where the folder has none. Raises ChatTemplateError."""
    try:
        if (folder / TEMPLATE_FILE).is_file():
            return (folder / TEMPLATE_FILE).read_text(encoding="utf-8")
        if not (folder / CONFIG_FILE).is_file():
            return None
        config = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ChatTemplateError(f"{TEMPLATE_FILE} or {CONFIG_FILE} cannot be read: {error}") from error
    return _pick(config.get("chat_template") if isinstance(config, dict) else None)


def _pick(entry: Any) -> str | None:
    """Give the only template, or the one named default of a list of {name, template}."""
    if isinstance(entry, list):
        named = {item.get("name"): item.get("template") for item in entry if isinstance(item, dict)}
        entry = named.get(DEFAULT_NAME)
    return entry if isinstance(entry, str) else None
