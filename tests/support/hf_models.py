"""Small random `glm5_next` models in Transformers: every parameter random, so that no fault hides behind a 0 or a 1."""

import importlib.util
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from transformers import Glm5NextConfig, Glm5NextForConditionalGeneration
from transformers.utils import is_kernels_available


@dataclass(frozen=True, slots=True)
class HfShape:
    """Sizes of one random model.

    `layers` holds a letter a layer: k = KDA + dense, K = KDA + MoE, d = DSA + dense, D = DSA + MoE.
    """

    layers: str
    hidden: int = 48
    vocab: int = 96
    intermediate: int = 72
    expert_width: int = 40
    experts: int = 6
    experts_per_token: int = 2
    shared_experts: int = 1
    kda_heads: int = 2
    kda_head_dim: int = 16
    heads: int = 2
    nope: int = 24
    v_head: int = 20
    q_lora: int = 36
    kv_lora: int = 28
    index_heads: int = 2
    index_head_dim: int = 20
    pool: int = 4
    index_topk: int = 32
    swiglu_limit: float = 10.0
    rms_norm_eps: float = 1e-5
    hc_eps: float = 1e-6
    sinkhorn_iters: int = 20
    seed: int = 0

    @property
    def dense_limit(self) -> int:
        """Positions below this see every earlier token: selection starts where position + 1 reaches it."""
        return self.index_topk + self.pool


def build_config(shape: HfShape) -> Glm5NextConfig:
    """The configuration in Transformers' own spelling, with a vision tower as small as it allows."""
    text = {
        "vocab_size": shape.vocab,
        "hidden_size": shape.hidden,
        "intermediate_size": shape.intermediate,
        "moe_intermediate_size": shape.expert_width,
        "num_hidden_layers": len(shape.layers),
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.heads,
        "n_shared_experts": shape.shared_experts,
        "n_routed_experts": shape.experts,
        "num_experts_per_tok": shape.experts_per_token,
        "kv_lora_rank": shape.kv_lora,
        "q_lora_rank": shape.q_lora,
        "qk_nope_head_dim": shape.nope,
        "v_head_dim": shape.v_head,
        "max_position_embeddings": 4096,
        "pad_token_id": None,
        "mlp_layer_types": ["sparse" if letter.isupper() else "dense" for letter in shape.layers],
        "layer_types": ["linear_attention" if letter in "kK" else "indexed_attention" for letter in shape.layers],
        "indexer_types": ["full"] * len(shape.layers),
        "index_topk": shape.index_topk,
        "index_head_dim": shape.index_head_dim,
        "index_n_heads": shape.index_heads,
        "index_kpool": shape.pool,
        "linear_head_dim": shape.kda_head_dim,
        "linear_num_heads": shape.kda_heads,
        "swiglu_limit": shape.swiglu_limit,
        "rms_norm_eps": shape.rms_norm_eps,
        "hc_eps": shape.hc_eps,
        "hc_sinkhorn_iters": shape.sinkhorn_iters,
    }
    vision = {
        "depth": 1,
        "hidden_size": 16,
        "num_heads": 1,
        "intermediate_size": 16,
        "projection_intermediate_size": 16,
        "out_hidden_size": shape.hidden,
        "image_size": 28,
    }
    return Glm5NextConfig(text_config=text, vision_config=vision, dtype="float32")


def _spread(name: str, parameter: Tensor) -> tuple[float, float]:
    """(mean, standard deviation) for one parameter, chosen so that no part of the forward is idle.

    Default initialisation leaves most of these at 0 or 1, where a wrong formula gives the right answer.
    """
    fan_in = parameter.shape[-1]
    by_suffix: tuple[tuple[str, float, float], ...] = (
        ("hc.fn", 0.0, 1.5 * fan_in**-0.5),
        ("hc.base", 0.3, 0.8),
        ("hc.scale", 0.9, 0.3),
        ("e_score_correction_bias", 0.1, 0.25),
        ("k_norm.weight", 1.0, 0.25),
        ("k_norm.bias", 0.2, 0.5),
        ("index_kpool_compress_ape", 0.2, 1.0),
        ("A_log", 0.2, 0.4),
        ("dt_bias", -2.0, 2.0),
        ("conv1d.weight", 0.1, 0.6),
        ("embed_tokens.weight", 0.0, 1.0),
        ("lm_head.weight", 0.0, fan_in**-0.5),
        ("kv_b_proj.weight", 0.0, 1.5 * fan_in**-0.5),
        # Wide enough for both clamps of the SwiGLU to act; the way down is narrow, so that the streams stay near 1.
        ("gate_up_proj", 0.0, 6.0 * fan_in**-0.5),
        ("mlp.gate_proj.weight", 0.0, 6.0 * fan_in**-0.5),
        ("mlp.up_proj.weight", 0.0, 6.0 * fan_in**-0.5),
        ("shared_experts.gate_proj.weight", 0.0, 6.0 * fan_in**-0.5),
        ("shared_experts.up_proj.weight", 0.0, 6.0 * fan_in**-0.5),
        ("down_proj", 0.0, 0.05 * fan_in**-0.5),
        ("down_proj.weight", 0.0, 0.05 * fan_in**-0.5),
    )
    for suffix, mean, std in by_suffix:
        if name.endswith(suffix):
            return mean, std
    if parameter.ndim == 1:
        return 1.0, 0.25
    return 0.0, fan_in**-0.5


def build_model(shape: HfShape) -> Glm5NextForConditionalGeneration:
    """A random fp32 model of this shape. Raises AssertionError unless Transformers' plain PyTorch path is active."""
    assert importlib.util.find_spec("fla") is None, (
        "flash-linear-attention is installed: the reference would not be plain PyTorch"
    )
    assert importlib.util.find_spec("causal_conv1d") is None, (
        "causal-conv1d is installed: the reference would not be plain PyTorch"
    )
    assert not is_kernels_available(), (
        "Hugging Face's kernels package is active: the reference would not be plain PyTorch"
    )
    model = Glm5NextForConditionalGeneration._from_config(
        build_config(shape), dtype=torch.float32, attn_implementation="eager"
    )
    model.set_experts_implementation("eager")
    generator = torch.Generator().manual_seed(1000 + shape.seed)
    tensors = dict(model.named_parameters()) | {n: b for n, b in model.named_buffers() if "e_score" in n}
    with torch.no_grad():
        for name in sorted(tensors):
            mean, std = _spread(name, tensors[name])
            tensors[name].copy_(mean + std * torch.randn(tensors[name].shape, generator=generator))
    for name, tensor in tensors.items():
        assert tensor.dtype == torch.float32, f"{name} is {tensor.dtype}"
        assert tensor.std(correction=0) > 0, f"{name} is not random"
    return model.eval()


def save_model(model: Glm5NextForConditionalGeneration, folder: Path) -> Path:
    """Write the folder as `save_pretrained` does: its own spelling of names and configuration."""
    model.save_pretrained(folder)
    return folder
