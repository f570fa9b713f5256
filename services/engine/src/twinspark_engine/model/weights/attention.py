"""Loads the attention of one layer: KDA or DSA, split by heads, projections of the same input fused."""

import torch

from twinspark_engine.model.parameters import DsaWeights, KdaWeights
from twinspark_engine.model.weights.source import WeightSource

CONV_TAPS = 4


def load_kda(source: WeightSource, prefix: str) -> KdaWeights:
    """KdaWeights of the block at prefix ("...self_attn.")."""
    heads, head_dim = source.config.linear_num_heads, source.config.linear_head_dim
    channels = heads * head_dim
    qkv = [source.rows(f"{prefix}{part}_proj.weight", channels) for part in "qkv"]
    low_rank = [source.whole(f"{prefix}{part}_a_proj.weight") for part in "fg"]
    beta = source.rows(f"{prefix}b_proj.weight", heads)
    conv = [source.rows_fp32(f"{prefix}{part}_conv1d.weight", channels).view(-1, CONV_TAPS) for part in "qkv"]
    return KdaWeights(
        in_proj=torch.cat((*qkv, *low_rank, beta)),
        conv=torch.cat(conv),
        f_b=source.rows(f"{prefix}f_b_proj.weight", channels),
        g_b=source.rows(f"{prefix}g_b_proj.weight", channels),
        a_log=source.rows_fp32(f"{prefix}A_log", heads),
        dt_bias=source.rows_fp32(f"{prefix}dt_bias", channels).view(-1, head_dim),
        o_norm=source.whole(f"{prefix}o_norm.weight"),
        o_proj=source.columns(f"{prefix}o_proj.weight", channels),
    )


def load_dsa(source: WeightSource, prefix: str) -> DsaWeights:
    """DsaWeights of the block at prefix ("...self_attn.")."""
    config = source.config
    heads, key, value = config.num_attention_heads, config.qk_nope_head_dim, config.v_head_dim
    from_x = (
        "q_a_proj.weight",
        "kv_a_proj_with_mqa.weight",
        "indexer.wk.weight",
        "indexer.weights_proj.weight",
        "indexer.index_kpool_compress_gate",
    )
    kv_b = source.rows(f"{prefix}kv_b_proj.weight", heads * (key + value))
    by_head = kv_b.view(-1, key + value, config.kv_lora_rank)  # a head's rows: its keys, then its values
    return DsaWeights(
        in_proj=torch.cat([source.whole(prefix + name) for name in from_x]),
        q_a_norm=source.whole(f"{prefix}q_a_layernorm.weight"),
        kv_a_norm=source.whole(f"{prefix}kv_a_layernorm.weight"),
        q_b=source.rows(f"{prefix}q_b_proj.weight", heads * key),
        w_k=by_head[:, :key].contiguous(),
        w_v=by_head[:, key:].transpose(1, 2).contiguous(),
        o_proj=source.columns(f"{prefix}o_proj.weight", heads * value),
        wq_b=source.whole(f"{prefix}indexer.wq_b.weight"),
        k_norm_weight=source.whole(f"{prefix}indexer.k_norm.weight"),
        k_norm_bias=source.whole(f"{prefix}indexer.k_norm.bias"),
        ape=source.whole_fp32(f"{prefix}indexer.index_kpool_compress_ape"),
    )
