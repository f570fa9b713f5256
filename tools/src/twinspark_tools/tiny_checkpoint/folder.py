"""Writes a checkpoint folder: config, shards with their index, tokenizer, template, generation defaults."""

import json
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

from safetensors.torch import save_file
from torch import Tensor

from twinspark_engine.model.config import ModelConfig
from twinspark_engine.model.weights.headers import INDEX_NAME
from twinspark_engine.model.weights.names import layer_prefix
from twinspark_tools.tiny_checkpoint.draws import Draws
from twinspark_tools.tiny_checkpoint.shapes import Shape, config_json
from twinspark_tools.tiny_checkpoint.tokenizer import tokenizer_config_json, tokenizer_json
from twinspark_tools.tiny_checkpoint.weights import random_tensors

TEMPLATE_NAME = "chat_template.jinja"


def write_checkpoint(folder: Path, shape: Shape, seed: int = 0) -> None:
    """Writes the folder; the same shape and seed give the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    config = write_settings(folder, shape)
    write_json(folder / "tokenizer_config.json", tokenizer_config_json(config.max_position_embeddings))
    (folder / "tokenizer.json").write_text(tokenizer_json(shape), encoding="utf-8")
    tensors = random_tensors(config, Draws(seed), shape.expert_bits)
    cut = layer_prefix(config.num_hidden_layers // 2)  # two shards, so that every reader meets an index
    parts = [{name: tensors[name] for name in sorted(tensors) if (name >= cut) == later} for later in (False, True)]
    write_shards(folder, parts)


def write_settings(folder: Path, shape: Shape) -> ModelConfig:
    """Writes config.json, generation_config.json and the chat template; returns the config as the engine reads it."""
    content = config_json(shape)
    write_json(folder / "config.json", content)
    write_json(folder / "generation_config.json", _generation_config(shape))
    template = resources.files("twinspark_tools.tiny_checkpoint").joinpath(TEMPLATE_NAME).read_text(encoding="utf-8")
    (folder / TEMPLATE_NAME).write_text(template, encoding="utf-8")
    return ModelConfig.from_json(content)


def write_shards(folder: Path, parts: Sequence[Mapping[str, Tensor]]) -> None:
    """Writes one safetensors file a part, and their index; the shards of an earlier writing are removed."""
    for old in folder.glob("model-*-of-*.safetensors"):
        old.unlink()
    weight_map: dict[str, str] = {}
    for number, part in enumerate(parts, 1):
        file = f"model-{number:05}-of-{len(parts):05}.safetensors"
        save_file(dict(part), folder / file, {"format": "pt"})
        (folder / file).chmod(0o644)  # safetensors makes files that only their owner reads
        weight_map |= dict.fromkeys(part, file)
    total = sum(tensor.numel() * tensor.element_size() for part in parts for tensor in part.values())
    write_json(
        folder / INDEX_NAME,
        {"metadata": {"total_size": total}, "weight_map": {name: weight_map[name] for name in sorted(weight_map)}},
    )


def write_json(path: Path, content: Mapping[str, object]) -> None:
    """Writes indented JSON, text as it is, and a last line end."""
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _generation_config(shape: Shape) -> dict[str, object]:
    return {
        "eos_token_id": shape.eos_token_ids,
        "pad_token_id": shape.special_id("<|endoftext|>"),
        "temperature": 1.0,
        "top_p": 0.95,
    }
