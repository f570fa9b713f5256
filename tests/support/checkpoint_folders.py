"""Small checkpoint folders in the layouts that the engine loads."""

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import save_file
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

FP32_SUFFIXES = ("A_log", "dt_bias", "e_score_correction_bias", "_base", "_scale")


def micro_config(**text: object) -> dict[str, object]:
    """A config of four layers, published spelling: KDA dense, KDA MoE, DSA dense, DSA MoE, then MTP."""
    text_config: dict[str, object] = {
        "model_type": "glm5_next_text",
        "vocab_size": 92,
        "hidden_size": 128,
        "num_hidden_layers": 4,
        "num_nextn_predict_layers": 1,
        "max_position_embeddings": 4096,
        "layer_types": ["linear_attention"] * 2 + ["deepseek_sparse_attention"] * 2,
        "mlp_layer_types": ["dense", "sparse", "dense", "sparse"],
        "linear_attn_config": {
            "num_heads": 4,
            "head_dim": 12,
            "short_conv_kernel_size": 4,
            "gate_lower_bound": -5.0,
            "kda_layers": [0, 1],
            "full_attn_layers": [2, 3],
        },
        "intermediate_size": 88,
        "moe_intermediate_size": 256,
        "n_routed_experts": 3,
        "n_shared_experts": 1,
        "num_experts_per_tok": 2,
        "n_group": 1,
        "topk_group": 1,
        "norm_topk_prob": True,
        "routed_scaling_factor": 2.5,
        "swiglu_limit": 10.0,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "attention_bias": False,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "q_lora_rank": 20,
        "kv_lora_rank": 24,
        "qk_nope_head_dim": 10,
        "qk_rope_head_dim": 0,
        "v_head_dim": 14,
        "index_n_heads": 3,
        "index_head_dim": 8,
        "index_topk": 16,
        "index_kpool": 4,
        "index_kpool_always_select_tail": True,
        "indexer_types": ["full"] * 4,
        "hc_mult": 4,
        "hc_eps": 1e-6,
        "hc_sinkhorn_iters": 20,
    }
    return {"model_type": "glm5_next", "tie_word_embeddings": False, "text_config": text_config | text}


def all_shapes(config: ModelConfig, has_mtp: bool = True, routed: bool = True) -> dict[str, tuple[int, ...]]:
    """Published name to whole shape of every plain parameter."""
    shapes = dict(global_shapes(config))
    for layer in range(config.num_hidden_layers):
        shapes |= layer_shapes(config, layer)
    if has_mtp:
        shapes |= mtp_shapes(config)
    if routed:
        for layer in moe_layers(config, has_mtp):
            for expert in range(config.n_routed_experts):
                for projection in EXPERT_PROJECTIONS:
                    name = f"{expert_prefix(layer, expert, projection)}.weight"
                    shapes[name] = expert_shape(config, projection)
    return shapes


def random_plain(config: ModelConfig, dtype: torch.dtype = torch.bfloat16, routed: bool = True) -> dict[str, Tensor]:
    """Random parameters in the dtypes of the published BF16 release, or all in one other dtype."""
    generator = torch.Generator().manual_seed(3)
    tensors = {}
    for name, shape in all_shapes(config, routed=routed).items():
        value = torch.randn(shape, generator=generator)
        fp32 = dtype is torch.bfloat16 and name.endswith(FP32_SUFFIXES)
        tensors[name] = value if fp32 else value.to(dtype)
    return tensors


def write_folder(
    folder: Path, config: Mapping[str, object], tensors: Mapping[str, Tensor], shards: int = 1, **config_extra: object
) -> Path:
    """config.json and the tensors in one file, or in shards with an index."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({**config, **config_extra}))
    if shards == 1:
        save_file(dict(tensors), folder / "model.safetensors")
        return folder
    weight_map = {
        name: f"model-{place % shards:05}-of-{shards:05}.safetensors" for place, name in enumerate(sorted(tensors))
    }
    for file in set(weight_map.values()):
        save_file({name: tensors[name] for name in tensors if weight_map[name] == file}, folder / file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    return folder
