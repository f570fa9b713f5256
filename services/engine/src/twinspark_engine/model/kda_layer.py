"""The attention of a KDA layer: projections, short convolution, delta rule, gated norm.

One rank's heads, one partial sum.
"""

import torch
from torch import Tensor

from twinspark_engine.model.config import ModelConfig
from twinspark_engine.model.parameters import KdaWeights
from twinspark_engine.model.rows import Rows
from twinspark_engine.model.state import KdaState
from twinspark_kernels.gated_norm import gated_norm
from twinspark_kernels.kda import KdaInputs, KdaParams, kda_chunk, kda_recurrent
from twinspark_kernels.linear import linear
from twinspark_kernels.row_class import RowClass
from twinspark_kernels.short_conv import short_conv


def kda_attention(x: Tensor, rows: Rows, weights: KdaWeights, state: KdaState, config: ModelConfig) -> Tensor:
    """Attend x[T, D], the normed branch input, and advance `state` by these rows.

    Returns [T, D] fp32: this rank's part of o_proj's sum. Prompt rows take the chunk form, decode rows the
    recurrent one.
    """
    num_rows = x.shape[0]
    heads, width = weights.dt_bias.shape
    channels = heads * width
    projected = linear(x, weights.in_proj, row_class=rows.row_class)
    qkv, f_a, g_a, beta = projected.split([3 * channels, width, width, heads], dim=1)
    qkv = short_conv(qkv, weights.conv, state.conv, rows.slots, rows.positions)
    q, k, v = qkv.view(num_rows, 3, heads, width).unbind(1)
    forget = linear(f_a, weights.f_b, row_class=rows.row_class).view(num_rows, heads, width)
    inputs = KdaInputs(q, k, v, forget, beta)
    params = KdaParams(weights.a_log, weights.dt_bias, config.linear_lower_bound)
    attend = kda_chunk if rows.row_class is RowClass.PROMPT else kda_recurrent
    o = attend(inputs, params, state.recurrent, rows.slots, rows.positions)
    gate = linear(g_a, weights.g_b, row_class=rows.row_class).view(num_rows, heads, width)
    normed = gated_norm(o, gate, weights.o_norm, config.rms_norm_eps)
    return linear(normed.view(num_rows, channels), weights.o_proj, row_class=rows.row_class, out_dtype=torch.float32)
