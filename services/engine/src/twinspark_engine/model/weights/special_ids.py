"""Token ids that a checkpoint folder declares: where output ends, and from where on no token exists."""

from collections.abc import Iterator
from pathlib import Path

from twinspark_engine.model.checkpoint_error import CheckpointError, CheckpointReason
from twinspark_engine.model.config_fields import read_json


def eos_token_ids(folder: Path) -> tuple[int, ...]:
    """Ids that end output: of generation_config.json, else of config.json; empty if neither names any."""
    for source, values in _eos_sources(folder):
        value = values.get("eos_token_id")
        if value is None:
            continue
        ids = value if isinstance(value, list) else [value]
        if not all(isinstance(item, int) and not isinstance(item, bool) and item >= 0 for item in ids):
            message = f"{source}: eos_token_id is {value}: token ids are needed"
            raise CheckpointError(CheckpointReason.CONFIG_UNSUPPORTED, message)
        return tuple(ids)
    return ()


def first_masked_id(folder: Path) -> int | None:
    """The id from which on no token is ever drawn: past the tokenizer's last, if it has a chat template; else None.

    Such ids are padding rows of the embedding: they have no bytes.
    """
    if not (folder / "tokenizer.json").exists() or not _has_chat_template(folder):
        return None
    tokenizer = read_json(folder / "tokenizer.json")
    added, model = tokenizer.get("added_tokens"), tokenizer.get("model")
    ids = [token["id"] for token in added] if isinstance(added, list) else []
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    if isinstance(vocabulary, dict):
        ids.extend(vocabulary.values())
    return max(ids) + 1 if ids else None


def _eos_sources(folder: Path) -> Iterator[tuple[str, dict[str, object]]]:
    if (folder / "generation_config.json").exists():
        yield "generation_config.json", read_json(folder / "generation_config.json")
    config = read_json(folder / "config.json")
    text = config.get("text_config")
    if isinstance(text, dict):
        yield "config.json text_config", text
    yield "config.json", config


def _has_chat_template(folder: Path) -> bool:
    if (folder / "chat_template.jinja").exists():
        return True
    path = folder / "tokenizer_config.json"
    return path.exists() and bool(read_json(path).get("chat_template"))
