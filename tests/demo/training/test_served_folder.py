"""A served folder read back: every stored value at its place, experts decoded, and what cannot be read refused."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from support.checkpoint_folders import micro_config, random_plain, write_folder
from twinspark_demo.checkpoint import export
from twinspark_demo.quantization import collect, dequantize
from twinspark_demo.training.served_folder import load_folder
from twinspark_engine.model.checkpoint_error import CheckpointError
from twinspark_engine.model.config import ModelConfig
from twinspark_tools.tiny_checkpoint.draws import Draws
from twinspark_tools.tiny_checkpoint.folder import write_shards
from twinspark_tools.tiny_checkpoint.shapes import SHAPES, config_json
from twinspark_tools.tiny_checkpoint.weights import random_tensors

SHAPE = replace(SHAPES["tiny"], vocab_size=2048, num_layers=4, n_routed_experts=2)


@pytest.fixture(scope="module")
def tensors() -> dict[str, Tensor]:
    return random_tensors(ModelConfig.from_json(config_json(SHAPE)), Draws(4), SHAPE.expert_bits)


@pytest.fixture
def folder(tensors: dict[str, Tensor], tmp_path: Path) -> Path:
    plain = {name: tensor for name, tensor in tensors.items() if ".mlp.experts." not in name}
    export(tmp_path, plain, collect(tensors), SHAPE)
    return tmp_path


def test_the_model_has_every_stored_value_and_the_decoded_experts(folder: Path, tensors: dict[str, Tensor]) -> None:
    model = load_folder(folder)
    assert model.config == ModelConfig.from_json(config_json(SHAPE))
    for name, tensor in model.plain_tensors().items():
        assert tensor.dtype == torch.float32
        assert torch.equal(tensor, tensors[name].float()), name
    experts = collect(tensors)
    matrices = dict(model.expert_matrices())
    assert matrices.keys() == experts.keys()
    for prefix, matrix in matrices.items():
        assert torch.equal(matrix, dequantize(experts[prefix])), prefix


def test_tensors_of_a_vision_tower_are_left_out(folder: Path) -> None:
    stored = {name: tensor for file in folder.glob("*.safetensors") for name, tensor in load_file(file).items()}
    expected = load_folder(folder).state_dict()
    write_shards(folder, [stored, {"model.visual.blocks.0.norm1.weight": torch.ones(4)}])
    assert all(torch.equal(tensor, expected[name]) for name, tensor in load_folder(folder).state_dict().items())


def test_a_missing_tensor_is_named(folder: Path) -> None:
    (file,) = folder.glob("*.safetensors")
    stored = load_file(file)
    del stored["model.language_model.layers.4.eh_proj.weight"]
    save_file(stored, file)
    with pytest.raises(CheckpointError, match=r"layers\.4\.eh_proj\.weight"):
        load_folder(folder)


def test_a_folder_without_mtp_layer_is_refused(tensors: dict[str, Tensor], folder: Path) -> None:
    write_shards(folder, [{name: tensor for name, tensor in tensors.items() if ".layers.4." not in name}])
    with pytest.raises(ValueError, match="no MTP layer"):
        load_folder(folder)


def test_plain_experts_are_refused(tmp_path: Path) -> None:
    config = micro_config()
    write_folder(tmp_path, config, random_plain(ModelConfig.from_json(config)))
    with pytest.raises(ValueError, match="not EXL3"):
        load_folder(tmp_path)
