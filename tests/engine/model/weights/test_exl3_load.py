"""EXL3 routed experts: every rank decodes its slice of every expert, whatever codebook, bits and marker it has."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from support.checkpoint_folders import micro_config, random_plain, write_folder
from twinspark_engine.model.checkpoint_error import CheckpointError, CheckpointReason
from twinspark_engine.model.config import ModelConfig
from twinspark_engine.model.parameters import ModelWeights, MoeWeights
from twinspark_engine.model.weights import load_weights
from twinspark_engine.model.weights.names import EXPERT_PROJECTIONS, expert_prefix, expert_shape, moe_layers
from twinspark_kernels.exl3 import Codebook, Exl3Weight, decode_tiles, pack_signs
from twinspark_kernels.experts import Exl3Experts

EXL3_CONFIG = {
    "quant_method": "exl3",
    "version": "0.0.43",
    "bits": 4,
    "head_bits": 16,
    "codebook": "mcg",
    "scope": "glm53_routed_experts_only",
    "non_routed_dtype_policy": "official_source_native",
}
MARKERS = {Codebook.MCG: -877912083, Codebook.MUL1: -2082680531}
FIRST = "model.language_model.layers.1.mlp.experts.0"


def exl3_tensors(
    config: ModelConfig, codebook: Codebook, bits: int, marker_shape: tuple[int, ...]
) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(17)
    tensors = random_plain(config, routed=False)
    for layer in moe_layers(config, has_mtp=True):
        for expert in range(config.n_routed_experts):
            for projection in EXPERT_PROJECTIONS:
                out_features, in_features = expert_shape(config, projection)
                prefix = expert_prefix(layer, expert, projection)
                shape = (in_features // 16, out_features // 16, 16 * bits)
                words = torch.randint(-32768, 32768, shape, generator=generator, dtype=torch.int16)
                tensors[f"{prefix}.trellis"] = words
                tensors[f"{prefix}.suh"] = torch.randn(in_features, generator=generator).half()
                tensors[f"{prefix}.svh"] = torch.randn(out_features, generator=generator).half()
                if codebook in MARKERS:
                    value = torch.full(marker_shape, MARKERS[codebook], dtype=torch.int32)
                    tensors[f"{prefix}.{codebook.value}"] = value
    return tensors


def load_experts(folder: Path, world_size: int) -> list[list[Exl3Experts]]:
    """Experts by rank and MoE layer, the MTP layer last."""
    config = ModelConfig.from_folder(folder)
    return [experts_of(load_weights(folder, config, rank, world_size, torch.float32)) for rank in range(world_size)]


def experts_of(weights: ModelWeights) -> list[Exl3Experts]:
    assert weights.mtp is not None
    moe = [layer.mlp for layer in weights.layers if isinstance(layer.mlp, MoeWeights)]
    experts = [mlp.experts for mlp in [*moe, weights.mtp.mlp]]
    return [layer for layer in experts if isinstance(layer, Exl3Experts)]


def assert_experts(tensors: dict[str, Tensor], codebook: Codebook, ranks: list[list[Exl3Experts]]) -> None:
    for place, layer in enumerate((1, 3, 4)):
        for projection in EXPERT_PROJECTIONS:
            parts: list[Exl3Weight] = [getattr(rank[place], projection.removesuffix("_proj")) for rank in ranks]
            cut, kept = ("suh", "svh") if projection == "down_proj" else ("svh", "suh")
            for expert in range(3):
                prefix = expert_prefix(layer, expert, projection)
                whole = decode_tiles(tensors[f"{prefix}.trellis"], codebook).float()
                axis = 0 if projection == "down_proj" else 1
                assert torch.equal(torch.cat([part.inner[expert] for part in parts], dim=axis), whole), prefix
                joined = torch.cat([getattr(part, cut)[expert] for part in parts])
                assert torch.equal(joined, tensors[f"{prefix}.{cut}"]), prefix
                assert all(torch.equal(getattr(part, kept)[expert], tensors[f"{prefix}.{kept}"]) for part in parts)


@pytest.mark.parametrize("world_size", [1, 2])
@pytest.mark.parametrize("codebook", Codebook)
@pytest.mark.parametrize("marker_shape", [(), (1,)])
def test_ranks_reassemble_to_the_whole(
    tmp_path: Path, world_size: int, codebook: Codebook, marker_shape: tuple[int, ...]
) -> None:
    content = micro_config()
    tensors = exl3_tensors(ModelConfig.from_json(content), codebook, 4, marker_shape)
    write_folder(tmp_path, content, tensors, quantization_config=EXL3_CONFIG | {"codebook": codebook.value})
    assert_experts(tensors, codebook, load_experts(tmp_path, world_size))


@pytest.mark.parametrize("bits", [1, 2, 3, 5, 6, 7, 8])
def test_every_width_loads(tmp_path: Path, bits: int) -> None:
    content = micro_config()
    tensors = exl3_tensors(ModelConfig.from_json(content), Codebook.MCG, bits, (1,))
    write_folder(tmp_path, content, tensors, quantization_config=EXL3_CONFIG | {"bits": bits})
    assert_experts(tensors, Codebook.MCG, load_experts(tmp_path, 2))


def test_legacy_sign_words_load_as_scales(tmp_path: Path) -> None:
    content = micro_config()
    tensors = exl3_tensors(ModelConfig.from_json(content), Codebook.THREE_INST, 4, ())
    stored: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if name.endswith((".suh", ".svh")):
            tensors[name] = tensor.sign()
            stored[name.removesuffix("h")] = pack_signs(tensor)
        else:
            stored[name] = tensor
    write_folder(tmp_path, content, stored, quantization_config=EXL3_CONFIG | {"codebook": "3inst"})
    assert_experts(tensors, Codebook.THREE_INST, load_experts(tmp_path, 2))


def first_is_infinite(size: int) -> Tensor:
    scales = torch.ones(size, dtype=torch.float16)
    scales[0] = torch.inf
    return scales


REFUSALS = [
    ("up_proj.mcg", torch.tensor([1], dtype=torch.int32), CheckpointReason.TENSOR_VALUE, "mcg marker is 0x00000001"),
    (
        "up_proj.mcg",
        torch.tensor([1, 1], dtype=torch.int32),
        CheckpointReason.TENSOR_SHAPE,
        r"up_proj.mcg has shape \[2\]",
    ),
    ("up_proj.mul1", torch.tensor([1], dtype=torch.int32), CheckpointReason.TENSOR_UNEXPECTED, "are both there"),
    ("up_proj.suh", torch.full((128,), torch.nan).half(), CheckpointReason.TENSOR_VALUE, "0.up_proj.suh holds a NaN"),
    (
        "down_proj.svh",
        torch.full((128,), torch.inf).half(),
        CheckpointReason.TENSOR_VALUE,
        "0.down_proj.svh holds a NaN",
    ),
    ("up_proj.suh", torch.ones(128), CheckpointReason.TENSOR_DTYPE, "0.up_proj.suh has dtype F32: F16 is needed"),
    # Also in the other rank's part: both ranks must stop.
    ("up_proj.svh", first_is_infinite(256), CheckpointReason.TENSOR_VALUE, "0.up_proj.svh holds a NaN"),
    ("up_proj.svh", None, CheckpointReason.TENSOR_MISSING, "0.up_proj.svh is missing"),
    ("up_proj.trellis", None, CheckpointReason.TENSOR_MISSING, "0.up_proj.trellis is missing"),
    ("up_proj.trellis", torch.zeros(8, 16, 144).short(), CheckpointReason.TENSOR_SHAPE, r"has shape \[8, 16, 144\]"),
    ("up_proj.trellis", torch.zeros(16, 8, 64).short(), CheckpointReason.TENSOR_SHAPE, r"has shape \[16, 8, 64\]"),
    ("up_proj.scale", torch.ones(1), CheckpointReason.TENSOR_UNEXPECTED, "up_proj.scale is no parameter"),
    ("up_proj.bias", torch.ones(256).half(), CheckpointReason.TENSOR_UNEXPECTED, "up_proj.bias is no parameter"),
]


@pytest.mark.parametrize(("suffix", "tensor", "reason", "message"), REFUSALS)
def test_bad_tensor_is_refused_by_name(
    tmp_path: Path, suffix: str, tensor: Tensor | None, reason: CheckpointReason, message: str
) -> None:
    content = micro_config()
    config = ModelConfig.from_json(content)
    tensors = exl3_tensors(config, Codebook.MCG, 4, (1,))
    if tensor is None:
        del tensors[f"{FIRST}.{suffix}"]
    else:
        tensors[f"{FIRST}.{suffix}"] = tensor
    write_folder(tmp_path, content, tensors, quantization_config=EXL3_CONFIG)
    with pytest.raises(CheckpointError, match=message) as refusal:
        load_weights(tmp_path, config, 1, 2, torch.float32)
    assert refusal.value.reason is reason


@pytest.mark.parametrize(
    ("changes", "world_size", "message"),
    [
        ({"hidden_size": 192}, 1, "text_config.hidden_size is 192: EXL3 experts on 1 ranks need a multiple of 128"),
        ({"moe_intermediate_size": 128}, 2, "moe_intermediate_size is 128: .* need a multiple of 256"),
    ],
)
def test_sizes_that_cut_a_rotation_block_are_refused(
    tmp_path: Path, changes: dict[str, object], world_size: int, message: str
) -> None:
    content = micro_config(**changes)
    config = ModelConfig.from_json(content)
    write_folder(tmp_path, content, random_plain(config, routed=False), quantization_config=EXL3_CONFIG)
    with pytest.raises(CheckpointError, match=message) as refusal:
        load_weights(tmp_path, config, 0, world_size, torch.float32)
    assert refusal.value.reason is CheckpointReason.SIZE_NOT_DIVISIBLE
