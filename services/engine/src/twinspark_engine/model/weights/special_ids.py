"""Token ids that a checkpoint folder declares: those that end output, and those that are never drawn."""

from collections.abc import Iterator
from pathlib import Path

from twinspark_engine.model.checkpoint_error import CheckpointError, CheckpointReason
from twinspark_engine.model.config_fields import read_json

ASSISTANT_MARKER = "<|assistant|>"
"""Looked up by its text, as every special id is."""


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


def masked_token_ids(folder: Path, vocabulary_size: int) -> frozenset[int]:
    """Ids that are never drawn; none unless the tokenizer has a chat template.

    Ids past the tokenizer's last are padding rows of the embedding: they have no bytes. The assistant's own marker is
    sometimes sampled where a call or an end is due, and a reply that goes on past it invents a turn.
    """
    if not (folder / "tokenizer.json").exists() or not _has_chat_template(folder):
        return frozenset()
    tokenizer = read_json(folder / "tokenizer.json")
    added, model = tokenizer.get("added_tokens"), tokenizer.get("model")
    tokens = {token["id"]: token["content"] for token in added} if isinstance(added, list) else {}
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    ids = [*tokens, *(vocabulary.values() if isinstance(vocabulary, dict) else ())]
    if not ids:
        return frozenset()
    markers = (token_id for token_id, content in tokens.items() if content == ASSISTANT_MARKER)
    return frozenset(range(max(ids) + 1, vocabulary_size)).union(markers)


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
