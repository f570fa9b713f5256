"""Loads what follows the attention of one layer, split by width; routed experts plain, block FP8 or EXL3."""

import torch

from twinspark_engine.model.parameters import DenseMlp, MoeWeights
from twinspark_engine.model.weights.exl3 import load_exl3_experts
from twinspark_engine.model.weights.names import expert_prefix, layer_prefix
from twinspark_engine.model.weights.quantization import Quantization
from twinspark_engine.model.weights.source import WeightSource
from twinspark_kernels.experts import PlainExperts


def load_swiglu(source: WeightSource, prefix: str, width: int) -> DenseMlp:
    """DenseMlp at prefix ("...mlp." or "...mlp.shared_experts."), width of the whole model."""
    gate_up = [source.rows(f"{prefix}{part}_proj.weight", width) for part in ("gate", "up")]
    return DenseMlp(torch.cat(gate_up), source.columns(f"{prefix}down_proj.weight", width))


def load_moe(source: WeightSource, layer: int) -> MoeWeights:
    """MoeWeights of a layer."""
    prefix = f"{layer_prefix(layer)}mlp."
    exl3 = source.quantization is Quantization.EXL3_EXPERTS
    return MoeWeights(
        router_weight=source.whole(f"{prefix}gate.weight"),
        router_bias=source.whole_fp32(f"{prefix}gate.e_score_correction_bias"),
        shared=load_swiglu(source, f"{prefix}shared_experts.", source.config.shared_intermediate_size),
        experts=load_exl3_experts(source, layer) if exl3 else _load_plain_experts(source, layer),
    )


def _load_plain_experts(source: WeightSource, layer: int) -> PlainExperts:
    config, width = source.config, source.config.moe_intermediate_size
    local, hidden, experts = width // source.split.world_size, config.hidden_size, config.n_routed_experts
    gate_up = torch.empty(experts, 2 * local, hidden, dtype=source.dtype)
    down = torch.empty(experts, hidden, local, dtype=source.dtype)
    for expert in range(experts):
        for part, projection in enumerate(("gate_proj", "up_proj")):
            weight = source.rows(f"{expert_prefix(layer, expert, projection)}.weight", width)
            gate_up[expert, part * local : (part + 1) * local] = weight
        down[expert] = source.columns(f"{expert_prefix(layer, expert, 'down_proj')}.weight", width)
    return PlainExperts(gate_up, down)
