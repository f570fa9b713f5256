"""The full-size releases: names, shapes and dtypes give exactly the published counts of tensors and bytes."""

import math
from pathlib import Path

import pytest

from support.checkpoint_folders import FP32_SUFFIXES, all_shapes
from twinspark_engine.model.config import ModelConfig
from twinspark_engine.model.weights.headers import ITEM_BYTES, StoredTensor
from twinspark_engine.model.weights.plan import plan_tensors
from twinspark_engine.model.weights.quantization import Quantization

VISION_TENSORS, VISION_BYTES = 347, 1_127_254_016
FP8_DSA = ("q_a_proj.weight", "q_b_proj.weight", "kv_a_proj_with_mqa.weight")
DSA_LAYERS = (*range(3, 45, 4), 45)


def full_config() -> ModelConfig:
    """config.json as published, the fields that are read."""
    layers = range(45)
    kda = [layer for layer in layers if layer % 4 != 3]
    text: dict[str, object] = {
        "model_type": "glm5_next_text",
        "vocab_size": 154880,
        "hidden_size": 4096,
        "num_hidden_layers": 45,
        "num_nextn_predict_layers": 1,
        "max_position_embeddings": 1048576,
        "layer_types": ["linear_attention" if layer in kda else "deepseek_sparse_attention" for layer in layers],
        "mlp_layer_types": ["dense"] * 3 + ["sparse"] * 42,
        "first_k_dense_replace": 3,
        "linear_attn_config": {
            "num_heads": 64,
            "head_dim": 128,
            "short_conv_kernel_size": 4,
            "gate_lower_bound": -5.0,
            "kda_layers": kda,
            "full_attn_layers": [layer for layer in layers if layer not in kda],
        },
        "intermediate_size": 12288,
        "moe_intermediate_size": 2048,
        "n_routed_experts": 288,
        "n_shared_experts": 1,
        "num_experts_per_tok": 8,
        "n_group": 1,
        "topk_group": 1,
        "norm_topk_prob": True,
        "scoring_func": "sigmoid",
        "topk_method": "noaux_tc",
        "moe_router_dtype": "float32",
        "routed_scaling_factor": 2.5,
        "swiglu_limit": 10.0,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "attention_bias": False,
        "num_attention_heads": 64,
        "num_key_value_heads": 64,
        "head_dim": 0,
        "q_lora_rank": 1536,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 256,
        "qk_rope_head_dim": 0,
        "qk_head_dim": 256,
        "v_head_dim": 256,
        "mla_use_nope": True,
        "index_n_heads": 32,
        "index_head_dim": 128,
        "index_topk": 2048,
        "index_kpool": 4,
        "index_kpool_compress": True,
        "index_kpool_always_select_tail": True,
        "indexer_types": ["full"] * 45,
        "indexer_rope_interleave": True,
        "index_share_for_mtp_iteration": True,
        "mhc": True,
        "hc_mult": 4,
        "hc_eps": 1e-6,
        "hc_sinkhorn_iters": 20,
        "eos_token_id": [154820, 154827, 154829],
    }
    return ModelConfig.from_json({"model_type": "glm5_next", "tie_word_embeddings": False, "text_config": text})


def is_fp8(name: str) -> bool:
    mlp = name.endswith(("gate_proj.weight", "up_proj.weight", "down_proj.weight"))
    dsa_out = any(f".layers.{layer}.self_attn.o_proj.weight" in name for layer in DSA_LAYERS)
    return mlp or dsa_out or name.endswith(FP8_DSA)


def stored(quantization: Quantization) -> list[StoredTensor]:
    """What the headers of a release say about its text model."""
    config, file = full_config(), Path("model.safetensors")
    tensors = []
    for name, shape in all_shapes(config).items():
        if quantization is Quantization.EXL3_EXPERTS and ".experts." in name:
            tensors += exl3_tensors(name.removesuffix(".weight"), shape, file)
        elif quantization is Quantization.BLOCK_FP8 and is_fp8(name):
            grid = (-(-shape[0] // 128), -(-shape[1] // 128))
            tensors += [StoredTensor(name, file, "F8_E4M3", shape)]
            tensors += [StoredTensor(f"{name}_scale_inv", file, "F32", grid)]
        else:
            tensors.append(StoredTensor(name, file, "F32" if name.endswith(FP32_SUFFIXES) else "BF16", shape))
    return tensors


def exl3_tensors(prefix: str, shape: tuple[int, ...], file: Path) -> list[StoredTensor]:
    out_features, in_features = shape
    return [
        StoredTensor(f"{prefix}.trellis", file, "I16", (in_features // 16, out_features // 16, 64)),
        StoredTensor(f"{prefix}.suh", file, "F16", (in_features,)),
        StoredTensor(f"{prefix}.svh", file, "F16", (out_features,)),
        StoredTensor(f"{prefix}.mcg", file, "I32", (1,)),
    ]


@pytest.mark.parametrize(
    ("quantization", "num_tensors", "num_bytes"),
    [
        (Quantization.PLAIN, 38_770, 642_646_653_816),
        (Quantization.BLOCK_FP8, 76_108, 328_326_771_576),
        (Quantization.EXL3_EXPERTS, 150_226, 175_622_979_576),
    ],
)
def test_full_release_is_planned_to_the_published_byte(
    quantization: Quantization, num_tensors: int, num_bytes: int
) -> None:
    tensors = stored(quantization)
    assert len(tensors) + VISION_TENSORS == num_tensors
    assert sum(math.prod(t.shape) * ITEM_BYTES[t.dtype] for t in tensors) + VISION_BYTES == num_bytes
    plan = plan_tensors(tensors, full_config(), quantization)
    assert plan.has_mtp
    assert plan.num_bytes + VISION_BYTES == num_bytes


def test_full_release_divides_over_two_ranks() -> None:
    full_config().check_world_size(2)
