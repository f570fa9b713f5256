"""The attention of a DSA layer: latents, indexer with pools, absorbed latent attention.

One rank's heads, one partial sum. The indexer and the latents are replicated: every rank computes the same selection,
bit for bit.
"""

import torch
from torch import Tensor

from twinspark_engine.model.config import ModelConfig
from twinspark_engine.model.parameters import DsaWeights
from twinspark_engine.model.rows import Rows
from twinspark_engine.model.state import DsaState, ModelState
from twinspark_kernels.indexer import select_pools
from twinspark_kernels.latent_attention import latent_attention
from twinspark_kernels.latent_rows import write_latents
from twinspark_kernels.layer_norm import layer_norm
from twinspark_kernels.linear import head_linear, linear
from twinspark_kernels.pool_keys import update_pools
from twinspark_kernels.rms_norm import rms_norm
from twinspark_kernels.scratch import GrowingScratch

INDEX_NORM_EPS = 1e-6
"""The indexer's key norm is a LayerNorm with an epsilon of its own."""


def dsa_attention(
    x: Tensor, rows: Rows, weights: DsaWeights, state: DsaState, whole: ModelState, config: ModelConfig
) -> Tensor:
    """Attend x[T, D], the normed branch input, after writing latents and pools of these rows to `state`.

    `whole` is the state that this layer's is part of. Returns [T, D] fp32: this rank's part of o_proj's sum.
    """
    num_rows, row_class, dtype = x.shape[0], rows.row_class, x.dtype
    index_dim = config.index_head_dim
    # fp32: the head weights of the indexer are not rounded, which would change near-tie rankings.
    projected = linear(x, weights.in_proj, row_class=row_class, out_dtype=torch.float32)
    q_a, kv_a, keys, head_weights, gates = projected.split(
        [config.q_lora_rank, config.kv_lora_rank, index_dim, config.index_n_heads, index_dim], dim=1
    )
    residual = rms_norm(q_a.to(dtype), weights.q_a_norm, config.rms_norm_eps)
    latents = rms_norm(kv_a.to(dtype), weights.kv_a_norm, config.rms_norm_eps)
    write_latents(latents, state.latents, rows.slots, rows.positions)
    keys = layer_norm(keys.to(dtype), weights.k_norm_weight, weights.k_norm_bias, INDEX_NORM_EPS)
    update_pools(
        keys, gates.to(dtype), weights.ape, state.ring_keys, state.ring_gates, state.pools, rows.slots, rows.positions
    )
    selected = None
    if whole.context >= config.index_topk + config.index_kpool:  # else no position is sparse
        selected = _select(residual, head_weights, rows, weights, state, whole.scratch, config)
    q = linear(residual, weights.q_b, row_class=row_class).view(num_rows, -1, config.qk_nope_head_dim)
    attended = latent_attention(
        head_linear(q, weights.w_k, row_class=row_class),
        state.latents,
        rows.slots,
        rows.positions,
        selected,
        scale=config.qk_nope_head_dim**-0.5,
        pool=config.index_kpool,
        index_topk=config.index_topk,
    )
    values = head_linear(attended, weights.w_v, row_class=row_class).view(num_rows, -1)
    return linear(values, weights.o_proj, row_class=row_class, out_dtype=torch.float32)


def _select(
    residual: Tensor,
    head_weights: Tensor,
    rows: Rows,
    weights: DsaWeights,
    state: DsaState,
    scratch: GrowingScratch,
    config: ModelConfig,
) -> Tensor:
    """Pools of each row, [T, num_selected_pools]."""
    queries = linear(residual, weights.wq_b, row_class=rows.row_class).view(
        residual.shape[0], config.index_n_heads, config.index_head_dim
    )
    return select_pools(
        queries,
        head_weights * config.index_n_heads**-0.5,
        state.pools,
        rows.slots,
        rows.positions,
        num_selected=config.num_selected_pools,
        pool=config.index_kpool,
        scratch=scratch,
    )
