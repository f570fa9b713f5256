"""Writes a checkpoint folder: config, two shards with their index, tokenizer, template, generation defaults."""

import json
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from safetensors.torch import save_file
from torch import Tensor

from twinspark_engine.model.config import ModelConfig
from twinspark_engine.model.weights.names import layer_prefix
from twinspark_tools.tiny_checkpoint.draws import Draws
from twinspark_tools.tiny_checkpoint.shapes import Shape, config_json
from twinspark_tools.tiny_checkpoint.tokenizer import tokenizer_config_json, tokenizer_json
from twinspark_tools.tiny_checkpoint.weights import random_tensors

TEMPLATE_NAME = "chat_template.jinja"


def write_checkpoint(folder: Path, shape: Shape, seed: int = 0) -> None:
    """Writes the folder; the same shape and seed give the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    content = config_json(shape)
    config = ModelConfig.from_json(content)
    _write_json(folder / "config.json", content)
    _write_json(folder / "generation_config.json", _generation_config(shape))
    _write_json(folder / "tokenizer_config.json", tokenizer_config_json(config.max_position_embeddings))
    (folder / "tokenizer.json").write_text(tokenizer_json(shape), encoding="utf-8")
    template = resources.files("twinspark_tools.tiny_checkpoint").joinpath(TEMPLATE_NAME).read_text(encoding="utf-8")
    (folder / TEMPLATE_NAME).write_text(template, encoding="utf-8")
    tensors = random_tensors(config, Draws(seed), shape.expert_bits)
    _write_shards(folder, tensors, layer_prefix(config.num_hidden_layers // 2))


def _generation_config(shape: Shape) -> dict[str, object]:
    return {
        "eos_token_id": shape.eos_token_ids,
        "pad_token_id": shape.special_id("<|endoftext|>"),
        "temperature": 1.0,
        "top_p": 0.95,
    }


def _write_shards(folder: Path, tensors: Mapping[str, Tensor], first_of_second: str) -> None:
    """Two shards, cut by name, so that every reader meets an index."""
    names = [f"model-0000{part}-of-00002.safetensors" for part in (1, 2)]
    weight_map = {name: names[name >= first_of_second] for name in sorted(tensors)}
    for file in names:
        held = {name: tensors[name] for name in weight_map if weight_map[name] == file}
        save_file(held, folder / file, {"format": "pt"})
        (folder / file).chmod(0o644)  # safetensors makes files that only their owner reads
    total = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
    _write_json(folder / "model.safetensors.index.json", {"metadata": {"total_size": total}, "weight_map": weight_map})


def _write_json(path: Path, content: Mapping[str, object]) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
