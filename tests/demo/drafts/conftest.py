"""A folder with tokenizer, template and a random model of a small shape."""

from dataclasses import replace
from pathlib import Path

import pytest

from twinspark_demo.checkpoint import export
from twinspark_demo.quantization import collect
from twinspark_engine.model.config import ModelConfig
from twinspark_tools.tiny_checkpoint.draws import Draws
from twinspark_tools.tiny_checkpoint.shapes import SHAPES, config_json
from twinspark_tools.tiny_checkpoint.weights import random_tensors

SHAPE = replace(SHAPES["tiny"], vocab_size=2048, num_layers=4, n_routed_experts=2)


@pytest.fixture(scope="session")
def served_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As it is exported."""
    folder = tmp_path_factory.mktemp("served") / "model"
    tensors = random_tensors(ModelConfig.from_json(config_json(SHAPE)), Draws(5), SHAPE.expert_bits)
    export(folder, {name: tensors[name] for name in tensors if ".mlp.experts." not in name}, collect(tensors), SHAPE)
    return folder
