"""The KDA layer's attention over packed rows: taps and state start anew with every document."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from twinspark_demo.training.kda_recurrence import kda_recurrence
from twinspark_demo.training.model.chains import Chains
from twinspark_demo.training.model.layout import RowLayout
from twinspark_demo.training.model.parameters import Weights
from twinspark_engine.model.config import ModelConfig

CONVOLVED = ("q", "k", "v")
MEMORY_TOKENS = 256  # a channel that keeps a token for longer than this adds to the memory loss
COLUMN_STEP = 64  # the fused product's width is padded to a multiple, for aligned rows


@dataclass(frozen=True, slots=True)
class KdaOutput:
    """One KDA layer's result."""

    y: Tensor  # [B, T, D] after o_proj
    memory_loss: Tensor  # fp32 scalar, 0..1


def kda_attention(x: Tensor, w: Weights, layout: RowLayout, config: ModelConfig, chains: Chains) -> KdaOutput:
    """x [B, T, D] after the norm."""
    heads, head_dim = config.linear_num_heads, config.linear_head_dim
    channels = heads * head_dim
    fused = w(*(f"{part}_proj.weight" for part in ("q", "k", "v", "f_a", "g_a", "b")))
    unused = -fused.shape[0] % COLUMN_STEP
    projected = F.linear(x, F.pad(fused, (0, 0, 0, unused)))
    qkv, forget, gate, b, _ = projected.split([3 * channels, head_dim, head_dim, heads, unused], dim=-1)
    taps = torch.cat([w.master(f"{part}_conv1d.weight") for part in CONVOLVED]).squeeze(1)
    q, k, v = chains.kda_inputs(qkv, taps, layout.positions, head_dim)
    log_decay, beta = chains.kda_gates(
        F.linear(forget, w("f_b_proj.weight")), w.master("dt_bias"), w.master("A_log"), b, config.linear_lower_bound
    )
    o = kda_recurrence(q, k, v, log_decay, beta, layout.starts)
    gate = F.linear(gate, w("g_b_proj.weight"))
    y = chains.gated_norm(o, gate, w.master("o_norm.weight"), config.rms_norm_eps)
    return KdaOutput(F.linear(y, w("o_proj.weight")), memory_loss(log_decay))


def memory_loss(log_decay: Tensor) -> Tensor:
    """log_decay [B, T, H, K], at most 0: mean of max(0, 1 + MEMORY_TOKENS * log_decay); 1 if nothing is forgotten."""
    return F.relu(1.0 + MEMORY_TOKENS * log_decay.float()).mean()
