"""load_weights: one rank's parameters of a checkpoint folder."""

from pathlib import Path

import torch

from twinspark_engine.model.config import AttentionKind, MlpKind, ModelConfig
from twinspark_engine.model.parameters import HyperConnection, LayerWeights, ModelWeights, MtpWeights
from twinspark_engine.model.weights.attention import load_dsa, load_kda
from twinspark_engine.model.weights.mlp import load_moe, load_swiglu
from twinspark_engine.model.weights.names import EMBED, HEAD, NORM, layer_prefix
from twinspark_engine.model.weights.plan import build_plan
from twinspark_engine.model.weights.reader import CheckpointReader, Progress, no_progress
from twinspark_engine.model.weights.source import WeightSource
from twinspark_engine.model.weights.split import RankSplit


def load_weights(
    folder: Path,
    config: ModelConfig,
    rank: int,
    world_size: int,
    dtype: torch.dtype,
    progress: Progress = no_progress,
) -> ModelWeights:
    """Reads this rank's slices; CheckpointError names what is wrong, by the headers before anything is allocated."""
    plan = build_plan(folder, config, world_size)
    with CheckpointReader(plan, progress) as reader:
        source = WeightSource(reader, config, RankSplit(rank, world_size), dtype, plan.quantization)
        return ModelWeights(
            embed=source.whole(EMBED),
            layers=tuple(_load_layer(source, layer) for layer in range(config.num_hidden_layers)),
            norm=source.whole(NORM),
            head=source.rows(HEAD, config.vocab_size),
            vocab_offset=source.split.part(config.vocab_size).start,
            mtp=_load_mtp(source) if plan.has_mtp else None,
        )


def _load_layer(source: WeightSource, layer: int) -> LayerWeights:
    config, prefix = source.config, layer_prefix(layer)
    kda = config.attention_kinds[layer] is AttentionKind.KDA
    dense = config.mlp_kinds[layer] is MlpKind.DENSE
    return LayerWeights(
        input_layernorm=source.whole(f"{prefix}input_layernorm.weight"),
        post_attention_layernorm=source.whole(f"{prefix}post_attention_layernorm.weight"),
        attn_hc=_load_hyper_connection(source, f"{prefix}hc_attn_"),
        ffn_hc=_load_hyper_connection(source, f"{prefix}hc_ffn_"),
        attention=(load_kda if kda else load_dsa)(source, f"{prefix}self_attn."),
        mlp=load_swiglu(source, f"{prefix}mlp.", config.intermediate_size) if dense else load_moe(source, layer),
    )


def _load_hyper_connection(source: WeightSource, prefix: str) -> HyperConnection:
    fn, base, scale = (source.whole_fp32(prefix + part) for part in ("fn", "base", "scale"))
    return HyperConnection(fn, base, scale)


def _load_mtp(source: WeightSource) -> MtpWeights:
    layer = source.config.num_hidden_layers
    prefix = layer_prefix(layer)
    return MtpWeights(
        enorm=source.whole(f"{prefix}enorm.weight"),
        hnorm=source.whole(f"{prefix}hnorm.weight"),
        eh_proj=source.whole(f"{prefix}eh_proj.weight"),
        input_layernorm=source.whole(f"{prefix}input_layernorm.weight"),
        post_attention_layernorm=source.whole(f"{prefix}post_attention_layernorm.weight"),
        attention=load_dsa(source, f"{prefix}self_attn."),
        mlp=load_moe(source, layer),
        shared_head_norm=source.whole(f"{prefix}shared_head.norm.weight"),
    )
