"""A served folder of random weights, and a folder of a drafter for it."""

from dataclasses import replace
from pathlib import Path

import pytest

from support.drafters import random_drafter
from twinspark_demo.checkpoint import export
from twinspark_demo.drafter import DEMO
from twinspark_demo.drafter.folder import export_drafter
from twinspark_demo.quantization import collect
from twinspark_engine.model.config import ModelConfig
from twinspark_tools.tiny_checkpoint.draws import Draws
from twinspark_tools.tiny_checkpoint.shapes import SHAPES, config_json
from twinspark_tools.tiny_checkpoint.weights import random_tensors

SHAPE = replace(SHAPES["tiny"], vocab_size=2048, num_layers=4, n_routed_experts=2)
CONFIG = replace(
    DEMO, hidden_size=128, intermediate_size=96, head_dim=16, num_target_layers=4, target_layer_ids=(0, 1, 3),
    selector_rank=16, sliding_window=24,
)  # fmt: skip


@pytest.fixture(scope="session")
def served_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As it is exported."""
    folder = tmp_path_factory.mktemp("rounds") / "model"
    tensors = random_tensors(ModelConfig.from_json(config_json(SHAPE)), Draws(5), SHAPE.expert_bits)
    export(folder, {name: tensors[name] for name in tensors if ".mlp.experts." not in name}, collect(tensors), SHAPE)
    return folder


@pytest.fixture(scope="session")
def drafter_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Window of 24, taps after the layers 0, 1 and 3."""
    folder = tmp_path_factory.mktemp("rounds") / "drafter"
    export_drafter(folder, dict(random_drafter(CONFIG).named_parameters()), CONFIG)
    return folder
