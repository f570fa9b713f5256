"""Undoes the fusing and splitting of a load: the parameters of all ranks, back under their published names."""

from collections.abc import Sequence

import torch
from torch import Tensor

from twinspark_engine.model.config import ModelConfig
from twinspark_engine.model.parameters import (
    DenseMlp,
    DsaWeights,
    HyperConnection,
    KdaWeights,
    LayerWeights,
    ModelWeights,
    MoeWeights,
    MtpWeights,
)
from twinspark_kernels.experts import PlainExperts


def published(config: ModelConfig, ranks: Sequence[ModelWeights]) -> dict[str, Tensor]:
    """Every plain parameter by its published name; replicated ones are asserted equal on all ranks."""
    tensors = {
        "model.language_model.embed_tokens.weight": same([rank.embed for rank in ranks]),
        "model.language_model.norm.weight": same([rank.norm for rank in ranks]),
        "lm_head.weight": torch.cat([rank.head for rank in ranks]),
    }
    for layer in range(config.num_hidden_layers):
        parts = _layer(config, [rank.layers[layer] for rank in ranks])
        tensors |= {f"model.language_model.layers.{layer}.{name}": tensor for name, tensor in parts.items()}
    mtp = [rank.mtp for rank in ranks if rank.mtp is not None]
    if mtp:
        prefix = f"model.language_model.layers.{config.num_hidden_layers}."
        tensors |= {prefix + name: tensor for name, tensor in _mtp(config, mtp).items()}
    return tensors


def same(tensors: Sequence[Tensor]) -> Tensor:
    """One of several equal tensors."""
    assert all(torch.equal(tensors[0], other) for other in tensors[1:])
    return tensors[0]


def _layer(config: ModelConfig, ranks: Sequence[LayerWeights]) -> dict[str, Tensor]:
    tensors = _block(config, [rank.attention for rank in ranks], [rank.mlp for rank in ranks])
    for norm in ("input_layernorm", "post_attention_layernorm"):
        tensors[f"{norm}.weight"] = same([getattr(rank, norm) for rank in ranks])
    for site in ("attn", "ffn"):
        connections: list[HyperConnection] = [getattr(rank, f"{site}_hc") for rank in ranks]
        for part in ("fn", "base", "scale"):
            tensors[f"hc_{site}_{part}"] = same([getattr(connection, part) for connection in connections])
    return tensors


def _mtp(config: ModelConfig, ranks: Sequence[MtpWeights]) -> dict[str, Tensor]:
    tensors = _block(config, [rank.attention for rank in ranks], [rank.mlp for rank in ranks])
    for field in ("enorm", "hnorm", "eh_proj", "input_layernorm", "post_attention_layernorm", "shared_head_norm"):
        name = "shared_head.norm" if field == "shared_head_norm" else field
        tensors[f"{name}.weight"] = same([getattr(rank, field) for rank in ranks])
    return tensors


def _block(
    config: ModelConfig, attentions: Sequence[KdaWeights | DsaWeights], mlps: Sequence[DenseMlp | MoeWeights]
) -> dict[str, Tensor]:
    kda = [attention for attention in attentions if isinstance(attention, KdaWeights)]
    dsa = [attention for attention in attentions if isinstance(attention, DsaWeights)]
    dense = [mlp for mlp in mlps if isinstance(mlp, DenseMlp)]
    moe = [mlp for mlp in mlps if isinstance(mlp, MoeWeights)]
    attention = _kda(config, kda) if kda else _dsa(config, dsa)
    tensors = {f"self_attn.{name}": tensor for name, tensor in attention.items()}
    return tensors | (_swiglu("mlp.", dense) if dense else _moe(config, moe))


def _kda(config: ModelConfig, ranks: Sequence[KdaWeights]) -> dict[str, Tensor]:
    heads, head_dim = config.linear_num_heads // len(ranks), config.linear_head_dim
    channels = heads * head_dim
    rows = [rank.in_proj.split([channels] * 3 + [head_dim] * 2 + [heads]) for rank in ranks]
    names = ("q_proj", "k_proj", "v_proj", "f_a_proj", "g_a_proj", "b_proj")
    tensors = {}
    for place, name in enumerate(names):
        parts = [rank[place] for rank in rows]
        tensors[f"{name}.weight"] = same(parts) if "_a_" in name else torch.cat(parts)
    for place, name in enumerate("qkv"):
        tensors[f"{name}_conv1d.weight"] = torch.cat([rank.conv.chunk(3)[place] for rank in ranks])[:, None]
    return tensors | {
        "f_b_proj.weight": torch.cat([rank.f_b for rank in ranks]),
        "g_b_proj.weight": torch.cat([rank.g_b for rank in ranks]),
        "A_log": torch.cat([rank.a_log for rank in ranks]),
        "dt_bias": torch.cat([rank.dt_bias.flatten() for rank in ranks]),
        "o_norm.weight": same([rank.o_norm for rank in ranks]),
        "o_proj.weight": torch.cat([rank.o_proj for rank in ranks], dim=1),
    }


def _dsa(config: ModelConfig, ranks: Sequence[DsaWeights]) -> dict[str, Tensor]:
    index_dim = config.index_head_dim
    sizes = [config.q_lora_rank, config.kv_lora_rank, index_dim, config.index_n_heads, index_dim]
    q_a, kv_a, wk, weights_proj, gate = same([rank.in_proj for rank in ranks]).split(sizes)
    # Per head: keys [N, L], then values [V, L].
    kv_b = torch.cat([torch.cat((rank.w_k, rank.w_v.transpose(1, 2)), dim=1) for rank in ranks])
    return {
        "q_a_proj.weight": q_a,
        "kv_a_proj_with_mqa.weight": kv_a,
        "indexer.wk.weight": wk,
        "indexer.weights_proj.weight": weights_proj,
        "indexer.index_kpool_compress_gate": gate,
        "q_a_layernorm.weight": same([rank.q_a_norm for rank in ranks]),
        "kv_a_layernorm.weight": same([rank.kv_a_norm for rank in ranks]),
        "q_b_proj.weight": torch.cat([rank.q_b for rank in ranks]),
        "kv_b_proj.weight": kv_b.flatten(0, 1),
        "o_proj.weight": torch.cat([rank.o_proj for rank in ranks], dim=1),
        "indexer.wq_b.weight": same([rank.wq_b for rank in ranks]),
        "indexer.k_norm.weight": same([rank.k_norm_weight for rank in ranks]),
        "indexer.k_norm.bias": same([rank.k_norm_bias for rank in ranks]),
        "indexer.index_kpool_compress_ape": same([rank.ape for rank in ranks]),
    }


def _swiglu(prefix: str, ranks: Sequence[DenseMlp]) -> dict[str, Tensor]:
    return {
        f"{prefix}gate_proj.weight": torch.cat([rank.gate_up.chunk(2)[0] for rank in ranks]),
        f"{prefix}up_proj.weight": torch.cat([rank.gate_up.chunk(2)[1] for rank in ranks]),
        f"{prefix}down_proj.weight": torch.cat([rank.down for rank in ranks], dim=1),
    }


def _moe(config: ModelConfig, ranks: Sequence[MoeWeights]) -> dict[str, Tensor]:
    tensors = _swiglu("mlp.shared_experts.", [rank.shared for rank in ranks])
    tensors["mlp.gate.weight"] = same([rank.router_weight for rank in ranks])
    tensors["mlp.gate.e_score_correction_bias"] = same([rank.router_bias for rank in ranks])
    plain = [rank.experts for rank in ranks if isinstance(rank.experts, PlainExperts)]
    for expert in range(config.n_routed_experts if plain else 0):
        parts = [DenseMlp(rank.gate_up[expert], rank.down[expert]) for rank in plain]
        tensors |= _swiglu(f"mlp.experts.{expert}.", parts)
    return tensors
