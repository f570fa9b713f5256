"""Block FP8 against a reference that widens each element by hand in float64; cuts off the 128 boundary included."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from support.checkpoint_folders import micro_config, random_plain, write_folder
from support.published_names import published
from twinspark_engine.model.checkpoint_error import CheckpointError, CheckpointReason
from twinspark_engine.model.config import ModelConfig
from twinspark_engine.model.weights import load_weights

FP8_CONFIG = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}
FP8_NAMES = ("q_a_proj.weight", "q_b_proj.weight", "kv_a_proj_with_mqa.weight", "gate_proj.weight", "up_proj.weight")
# Two ranks cut q_b at 180 rows, o_proj at 164 columns, MLP widths at 150 and 100: none a multiple of 128.
SIZES = {
    "hidden_size": 200,
    "intermediate_size": 300,
    "moe_intermediate_size": 200,
    "qk_nope_head_dim": 90,
    "v_head_dim": 82,
    "q_lora_rank": 140,
}


def is_fp8(name: str) -> bool:
    """The matrices that the published release stores in FP8: MLPs, experts, and four of each DSA block."""
    dsa_out = name.endswith("self_attn.o_proj.weight") and any(f".layers.{layer}." in name for layer in (2, 3, 4))
    return name.endswith((*FP8_NAMES, "down_proj.weight")) or dsa_out


def fp8_folder(folder: Path) -> tuple[ModelConfig, dict[str, Tensor]]:
    content = micro_config(**SIZES)
    config = ModelConfig.from_json(content)
    stored: dict[str, Tensor] = {}
    generator = torch.Generator().manual_seed(11)
    for name, tensor in random_plain(config).items():
        if not is_fp8(name):
            stored[name] = tensor
            continue
        stored[name] = (tensor.float() * 30).to(torch.float8_e4m3fn)
        grid = [-(-size // 128) for size in tensor.shape]
        stored[f"{name}_scale_inv"] = torch.rand(grid, generator=generator) * 0.02 + 1e-3
    write_folder(folder, content, stored, quantization_config=FP8_CONFIG)
    return config, stored


def reference(stored: dict[str, Tensor], name: str) -> Tensor:
    """float64: every value times the scale of its block, block by block."""
    values = stored[name].double()
    scales = stored.get(f"{name}_scale_inv")
    if scales is None:
        return values
    for row in range(scales.shape[0]):
        for column in range(scales.shape[1]):
            block = values[128 * row : 128 * (row + 1), 128 * column : 128 * (column + 1)]
            block *= scales[row, column].double()
    return values


@pytest.mark.parametrize("world_size", [1, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_every_parameter_is_value_times_block_scale(tmp_path: Path, world_size: int, dtype: torch.dtype) -> None:
    config, stored = fp8_folder(tmp_path)
    ranks = [load_weights(tmp_path, config, rank, world_size, dtype) for rank in range(world_size)]
    actual = published(config, ranks)
    assert sum(is_fp8(name) for name in actual) == 54  # 6 dense, 36 of MoE layers, 12 of DSA blocks
    for name, tensor in actual.items():
        # The product is rounded once to fp32 (exact in float64), then once to the compute dtype.
        expected = reference(stored, name).float().to(tensor.dtype)
        assert torch.equal(tensor, expected), name


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_bad_scale_ends_the_load_with_the_tensor_s_name(tmp_path: Path, value: float) -> None:
    content = micro_config(**SIZES)
    config, stored = fp8_folder(tmp_path)
    name = "model.language_model.layers.2.self_attn.o_proj.weight_scale_inv"
    stored[name][0, -1] = value
    write_folder(tmp_path, content, stored, quantization_config=FP8_CONFIG)
    for rank in (0, 1):  # also on the rank whose columns do not use that scale
        with pytest.raises(CheckpointError, match=name) as refusal:
            load_weights(tmp_path, config, rank, 2, torch.float32)
        assert refusal.value.reason is CheckpointReason.TENSOR_VALUE


def test_missing_scale_is_refused_by_name(tmp_path: Path) -> None:
    content = micro_config(**SIZES)
    config, stored = fp8_folder(tmp_path)
    name = "model.language_model.layers.0.mlp.up_proj.weight_scale_inv"
    del stored[name]
    write_folder(tmp_path, content, stored, quantization_config=FP8_CONFIG)
    with pytest.raises(CheckpointError, match=f"{name} is missing"):
        load_weights(tmp_path, config, 0, 1, torch.float32)


def test_scale_grid_of_another_shape_is_refused(tmp_path: Path) -> None:
    content = micro_config(**SIZES)
    config, stored = fp8_folder(tmp_path)
    name = "model.language_model.layers.0.mlp.up_proj.weight_scale_inv"
    stored[name] = torch.ones(2, 2)
    write_folder(tmp_path, content, stored, quantization_config=FP8_CONFIG)
    with pytest.raises(CheckpointError, match=r"has shape \[2, 2\]: \[3, 2\] is needed") as refusal:
        load_weights(tmp_path, config, 0, 1, torch.float32)
    assert refusal.value.reason is CheckpointReason.TENSOR_SHAPE


def test_fp8_without_its_quantization_config_is_refused(tmp_path: Path) -> None:
    config, stored = fp8_folder(tmp_path)
    write_folder(tmp_path, micro_config(**SIZES), stored)
    with pytest.raises(CheckpointError, match="has dtype F8_E4M3: BF16 or F16 or F32 is needed"):
        load_weights(tmp_path, config, 0, 1, torch.float32)
