"""The shapes that can be written, and their config.json in the published spelling."""

from collections.abc import Mapping
from dataclasses import dataclass

from twinspark_tools.tiny_checkpoint.special_tokens import NUM_ROOM_ROWS, SPECIAL_TOKENS


@dataclass(frozen=True)
class Shape:
    """Sizes of one checkpoint; names as in config.json."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    moe_intermediate_size: int
    n_routed_experts: int
    num_experts_per_tok: int
    heads: int  # of both kinds of attention
    head_dim: int  # of both kinds, keys and values
    q_lora_rank: int
    kv_lora_rank: int
    index_n_heads: int
    index_head_dim: int
    index_topk: int
    num_layers: int = 8
    num_dense_layers: int = 3
    expert_bits: int = 4

    @property
    def first_special_id(self) -> int:
        """Id of the first special token; rows after the last one are room."""
        return self.vocab_size - NUM_ROOM_ROWS - len(SPECIAL_TOKENS)

    def special_id(self, token: str) -> int:
        """Id of a special token."""
        return self.first_special_id + [name for name, _ in SPECIAL_TOKENS].index(token)

    @property
    def eos_token_ids(self) -> list[int]:
        """Ends of output: end of text and the markers of those who speak next."""
        return [self.special_id(token) for token in ("<|endoftext|>", "<|user|>", "<|observation|>")]


SHAPES: Mapping[str, Shape] = {
    "tiny": Shape(
        vocab_size=1536,
        hidden_size=128,
        intermediate_size=192,
        moe_intermediate_size=256,
        n_routed_experts=6,
        num_experts_per_tok=2,
        heads=4,
        head_dim=32,
        q_lora_rank=64,
        kv_lora_rank=64,
        index_n_heads=4,
        index_head_dim=32,
        index_topk=64,
    ),
    "demo": Shape(
        vocab_size=2048,
        hidden_size=256,
        intermediate_size=512,
        moe_intermediate_size=256,
        n_routed_experts=12,
        num_experts_per_tok=2,
        heads=4,
        head_dim=64,
        q_lora_rank=128,
        kv_lora_rank=128,
        index_n_heads=4,
        index_head_dim=64,
        index_topk=512,
    ),
}


def config_json(shape: Shape) -> dict[str, object]:
    """config.json of a shape: published spelling, EXL3 experts."""
    media = {
        "image_token_id": "<|image|>",
        "video_token_id": "<|video|>",
        "image_start_token_id": "<|begin_of_image|>",
        "image_end_token_id": "<|end_of_image|>",
        "video_start_token_id": "<|begin_of_video|>",
        "video_end_token_id": "<|end_of_video|>",
    }
    return {
        "architectures": ["Glm5NextForConditionalGeneration"],
        "model_type": "glm5_next",
        "tie_word_embeddings": False,
        **{field: shape.special_id(token) for field, token in media.items()},
        "text_config": _text_config(shape),
        "quantization_config": {
            "quant_method": "exl3",
            "version": "0.0.43",
            "bits": shape.expert_bits,
            "head_bits": 16,
            "codebook": "mcg",
            "scope": "glm53_routed_experts_only",
            "non_routed_dtype_policy": "official_source_native",
        },
    }


def _text_config(shape: Shape) -> dict[str, object]:
    return {
        "model_type": "glm5_next_text",
        "dtype": "bfloat16",
        "vocab_size": shape.vocab_size,
        "hidden_size": shape.hidden_size,
        "num_hidden_layers": shape.num_layers,
        "num_nextn_predict_layers": 1,
        "max_position_embeddings": 32768,
        "rms_norm_eps": 1e-5,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "eos_token_id": shape.eos_token_ids,
        "pad_token_id": shape.special_id("<|endoftext|>"),
        **_attention_config(shape),
        **_mlp_config(shape),
        "mhc": True,
        "hc_mult": 4,
        "hc_sinkhorn_iters": 20,
        "hc_eps": 1e-6,
    }


def _attention_config(shape: Shape) -> dict[str, object]:
    layers = range(shape.num_layers)
    dsa_layers = [layer for layer in layers if layer % 4 == 3]
    return {
        "layer_types": ["deepseek_sparse_attention" if i in dsa_layers else "linear_attention" for i in layers],
        "linear_attn_config": {
            "num_heads": shape.heads,
            "head_dim": shape.head_dim,
            "short_conv_kernel_size": 4,
            "gate_lower_bound": -5.0,
            "kda_layers": [layer for layer in layers if layer not in dsa_layers],
            "full_attn_layers": dsa_layers,
        },
        "attention_bias": False,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.heads,
        "head_dim": 0,
        "q_lora_rank": shape.q_lora_rank,
        "kv_lora_rank": shape.kv_lora_rank,
        "qk_nope_head_dim": shape.head_dim,
        "qk_rope_head_dim": 0,
        "qk_head_dim": shape.head_dim,
        "v_head_dim": shape.head_dim,
        "mla_use_nope": True,
        "index_n_heads": shape.index_n_heads,
        "index_head_dim": shape.index_head_dim,
        "index_topk": shape.index_topk,
        "index_kpool": 4,
        "index_kpool_compress": True,
        "index_kpool_always_select_tail": True,
        "indexer_types": ["full"] * shape.num_layers,
        "index_share_for_mtp_iteration": True,
    }


def _mlp_config(shape: Shape) -> dict[str, object]:
    sparse = shape.num_layers - shape.num_dense_layers
    return {
        "intermediate_size": shape.intermediate_size,
        "moe_intermediate_size": shape.moe_intermediate_size,
        "first_k_dense_replace": shape.num_dense_layers,
        "mlp_layer_types": ["dense"] * shape.num_dense_layers + ["sparse"] * sparse,
        "n_routed_experts": shape.n_routed_experts,
        "n_shared_experts": 1,
        "num_experts_per_tok": shape.num_experts_per_tok,
        "n_group": 1,
        "topk_group": 1,
        "norm_topk_prob": True,
        "scoring_func": "sigmoid",
        "topk_method": "noaux_tc",
        "moe_router_dtype": "float32",
        "routed_scaling_factor": 2.5,
        "swiglu_limit": 10.0,
    }
