"""The drafter's tensors under their published names, and how training starts them."""

import torch
from torch import Tensor

from twinspark_demo.drafter.config import DrafterConfig

SIDES = 2  # of a convolution's kernel: before the branch, behind it
CODEBOOK_DEVIATION = 0.3
CONVOLUTIONS = ("attention_conv", "mlp_conv")


def tensor_shapes(config: DrafterConfig) -> dict[str, tuple[int, ...]]:
    """Every tensor by name; embedding and head are the target's."""
    hidden, rank = config.hidden_size, config.selector_rank
    shapes: dict[str, tuple[int, ...]] = {
        "fc.weight": (hidden, len(config.target_layer_ids) * hidden),
        "hidden_norm.weight": (hidden,),
        "norm.weight": (hidden,),
        "candidate_selector.hidden_projection.weight": (rank, hidden),
        "candidate_selector.predecessor_codebook": (config.vocab_size, rank),
        "candidate_selector.successor_codebook": (config.vocab_size, rank),
    }
    for layer in range(config.num_hidden_layers):
        shapes |= {f"layers.{layer}.{name}": shape for name, shape in _layer_shapes(config).items()}
    return shapes


def initial(name: str, shape: tuple[int, ...], config: DrafterConfig, generator: torch.Generator) -> Tensor:
    """The value that training starts from, fp32: convolutions pass rows on, branches start small."""
    normal = torch.randn(shape, generator=generator)
    if name.endswith("base_kernel"):
        own_row = torch.zeros(shape)
        own_row[:, 0] = 1.0
        return own_row
    if name.endswith("kernel_projection.weight"):
        return torch.zeros(shape)
    if len(shape) == 1:
        return torch.ones(shape)
    if name.endswith("_codebook"):
        return normal * CODEBOOK_DEVIATION
    scaled: Tensor = normal * shape[-1] ** -0.5
    is_last_of_branch = name.endswith(("o_proj.weight", "down_proj.weight"))
    if is_last_of_branch:
        scaled /= (2 * config.num_hidden_layers) ** 0.5
    return scaled


def _layer_shapes(config: DrafterConfig) -> dict[str, tuple[int, ...]]:
    hidden, wide, taps = config.hidden_size, config.intermediate_size, config.conv_kernel_size
    queries, keys = config.num_attention_heads * config.head_dim, config.num_key_value_heads * config.head_dim
    shapes: dict[str, tuple[int, ...]] = {
        "input_layernorm.weight": (hidden,),
        "post_attention_layernorm.weight": (hidden,),
        "self_attn.q_proj.weight": (queries, hidden),
        "self_attn.k_proj.weight": (keys, hidden),
        "self_attn.v_proj.weight": (keys, hidden),
        "self_attn.o_proj.weight": (hidden, queries),
        "self_attn.q_norm.weight": (config.head_dim,),
        "self_attn.k_norm.weight": (config.head_dim,),
        "mlp.gate_proj.weight": (wide, hidden),
        "mlp.up_proj.weight": (wide, hidden),
        "mlp.down_proj.weight": (hidden, wide),
    }
    for name in CONVOLUTIONS:
        shapes[f"{name}.base_kernel"] = (SIDES, taps, hidden)
        shapes[f"{name}.kernel_projection.weight"] = (SIDES * taps * config.num_conv_groups, hidden)
    return shapes
