"""What follows the attention of a layer: a dense SwiGLU, or routed experts beside a shared one.

One rank's width, one partial sum.
"""

import torch
from torch import Tensor

from twinspark_engine.model.config import ModelConfig
from twinspark_engine.model.parameters import DenseMlp, MoeWeights
from twinspark_kernels.experts import grouped_experts
from twinspark_kernels.linear import linear
from twinspark_kernels.router import route
from twinspark_kernels.row_class import RowClass
from twinspark_kernels.swiglu import swiglu


def run_mlp(x: Tensor, weights: DenseMlp | MoeWeights, config: ModelConfig, row_class: RowClass) -> Tensor:
    """x[T, D], the normed branch input -> [T, D] fp32: this rank's part of the down projections' sum."""
    if isinstance(weights, DenseMlp):
        return _dense(x, weights, config, row_class)
    expert_ids, expert_weights = route(
        x,
        weights.router_weight,
        weights.router_bias,
        top_k=config.num_experts_per_tok,
        scaling=config.routed_scaling_factor,
        row_class=row_class,
    )
    routed = grouped_experts(
        x, expert_ids, expert_weights, weights.experts, swiglu_limit=config.swiglu_limit, row_class=row_class
    )
    return routed + _dense(x, weights.shared, config, row_class)


def _dense(x: Tensor, weights: DenseMlp, config: ModelConfig, row_class: RowClass) -> Tensor:
    gate, up = linear(x, weights.gate_up, row_class=row_class).chunk(2, dim=1)
    return linear(swiglu(gate, up, config.swiglu_limit), weights.down, row_class=row_class, out_dtype=torch.float32)
