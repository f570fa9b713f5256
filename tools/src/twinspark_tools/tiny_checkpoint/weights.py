"""Random values for every parameter of the architecture, each far enough from its neutral value to matter."""

import re
from itertools import chain

import torch
from torch import Tensor

from twinspark_engine.model.config import ModelConfig
from twinspark_engine.model.weights.names import (
    EXPERT_PROJECTIONS,
    expert_prefix,
    expert_shape,
    global_shapes,
    layer_shapes,
    moe_layers,
    mtp_shapes,
)
from twinspark_kernels.exl3 import MCG_MULTIPLIER, TILE
from twinspark_tools.tiny_checkpoint.draws import Draws

MCG_STD = 1.244
MCG_MARKER = MCG_MULTIPLIER - (1 << 32)

# Standard deviation of a matrix is gain / sqrt(columns). Gate and up are so large that both clamps of SwiGLU act on
# some of the entries; down makes up for it. The head's gain sets how peaked the distribution of the next token is.
GAINS = ((r"(gate|up)_proj\.weight$", 4.0), (r"down_proj\.weight$", 0.2), (r"lm_head\.weight$", 3.0))
# Decays between about 0.4 and 0.99 a token, so that the recurrent state remembers and forgets.
FP32_RANGES = (
    (r"hc_\w+_base$", -1.0, 1.0),
    (r"hc_\w+_scale$", 0.5, 1.5),
    (r"A_log$", -0.7, 0.7),
    (r"dt_bias$", -6.0, -1.0),
    (r"e_score_correction_bias$", -0.2, 0.2),
)
BF16_RANGES = (
    (r"k_norm\.bias$", -0.5, 0.5),
    (r"norm\.weight$", 0.7, 1.3),
    (r"_conv1d\.weight$", -0.8, 0.8),
    (r"_ape$", -1.0, 1.0),
    (r"embed_tokens\.weight$", -1.7, 1.7),
)


def random_tensors(config: ModelConfig, draws: Draws, expert_bits: int) -> dict[str, Tensor]:
    """Every tensor of the checkpoint by its published name: EXL3 (mcg) routed experts, the rest BF16 and F32."""
    layers = (layer_shapes(config, layer).items() for layer in range(config.num_hidden_layers))
    shapes = chain(global_shapes(config).items(), *layers, mtp_shapes(config).items())
    tensors = {name: _plain(name, shape, draws) for name, shape in shapes}
    for layer in moe_layers(config, has_mtp=True):
        for expert in range(config.n_routed_experts):
            for projection in EXPERT_PROJECTIONS:
                prefix = expert_prefix(layer, expert, projection)
                shape = expert_shape(config, projection)
                for suffix, tensor in exl3_tensors(shape, _gain(f"{prefix}.weight"), expert_bits, draws).items():
                    tensors[f"{prefix}.{suffix}"] = tensor
    return tensors


def exl3_tensors(shape: tuple[int, int], gain: float, bits: int, draws: Draws) -> dict[str, Tensor]:
    """One EXL3 projection [out, in] that acts like a random matrix of std gain / sqrt(in): any trellis is valid."""
    out_features, in_features = shape
    scale = gain / in_features**0.5 / MCG_STD
    return {
        "trellis": draws.words((in_features // TILE, out_features // TILE, TILE * bits)),
        "suh": (draws.signs((in_features,)) * draws.uniform((in_features,), 0.5 * scale, 1.5 * scale)).half(),
        "svh": draws.signs((out_features,)).half(),
        "mcg": torch.tensor([MCG_MARKER], dtype=torch.int32),
    }


def stored_dtype(name: str) -> torch.dtype:
    """In which a plain tensor of that published name is stored: float32 for a few small ones, else bfloat16."""
    return torch.float32 if any(re.search(pattern, name) for pattern, _, _ in FP32_RANGES) else torch.bfloat16


def _plain(name: str, shape: tuple[int, ...], draws: Draws) -> Tensor:
    for pattern, low, high in FP32_RANGES:
        if re.search(pattern, name):
            return draws.uniform(shape, low, high)
    for pattern, low, high in BF16_RANGES:
        if re.search(pattern, name):
            return draws.uniform(shape, low, high).bfloat16()
    return draws.bell(shape, _gain(name) / shape[-1] ** 0.5).bfloat16()


def _gain(name: str) -> float:
    return next((gain for pattern, gain in GAINS if re.search(pattern, name)), 1.0)
