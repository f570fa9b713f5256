"""One layer of the drafter: context rows leave keys and values only, block rows run through attention and MLP."""

import torch
import torch.nn.functional as F
from torch import Tensor

from twinspark_demo.drafter.blocks import Blocks
from twinspark_demo.drafter.config import DrafterConfig
from twinspark_demo.drafter.parameters import SIDES
from twinspark_demo.training.model.chains import rms_norm
from twinspark_demo.training.model.parameters import Weights


def rotary(x: Tensor, positions: Tensor, theta: float) -> Tensor:
    """x [..., H, N] at positions [...]: its halves turned against each other, phases in fp32 or better."""
    half = x.shape[-1] // 2
    dtype = torch.promote_types(x.dtype, torch.float32)
    rates = theta ** (-torch.arange(half, device=x.device, dtype=dtype) / half)
    phases = (positions[..., None].to(dtype) * rates)[..., None, :]
    cos, sin = phases.cos(), phases.sin()
    first, second = x.to(dtype).chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1).to(x.dtype)


def convolve(h: Tensor, base: Tensor, dynamic: Tensor) -> Tensor:
    """h [B, A, R, D], base [2, D], dynamic [B, A, R, 2, G] -> h: each row mixed with the one before it in its block.

    Kernel of a channel: base of the tap (own row, row before) plus the row's own part, which a group shares.
    """
    before = F.pad(h, (0, 0, 1, 0))[..., :-1, :]
    groups = dynamic.shape[-1]
    mixed: Tensor = torch.zeros_like(h).unflatten(-1, (groups, -1))
    for tap, rows in enumerate((h, before)):
        kernel = base[tap].view(groups, -1) + dynamic[..., tap, :, None]
        mixed = mixed + kernel * rows.unflatten(-1, (groups, -1))
    return mixed.flatten(-2)


def run_layer(x: Tensor, context: Tensor, positions: Tensor, blocks: Blocks, w: Weights, c: DrafterConfig) -> Tensor:
    """x [B, A, R, D], context [B, T, D] at positions [B, T] -> x behind both branches."""
    for convolution, norm in (("attention_conv", "input_layernorm"), ("mlp_conv", "post_attention_layernorm")):
        h = rms_norm(x, w.master(f"{norm}.weight"), c.rms_norm_eps)
        kernel = F.linear(h, w(f"{convolution}.kernel_projection.weight"))
        dynamic = kernel.unflatten(-1, (SIDES, c.conv_kernel_size, c.num_conv_groups))
        base = w(f"{convolution}.base_kernel")
        h = convolve(h, base[0], dynamic[..., 0, :, :])
        if convolution == "attention_conv":
            h = _attend(h, context, positions, blocks, w.under("self_attn."), c)
        else:
            h = _swiglu(h, w.under("mlp."))
        x = x + convolve(h, base[1], dynamic[..., 1, :, :])
    return x


def _attend(h: Tensor, context: Tensor, positions: Tensor, blocks: Blocks, w: Weights, c: DrafterConfig) -> Tensor:
    rows, places = h.flatten(1, 2), blocks.positions.flatten(1)
    q = _heads(rows, w, "q", c.num_attention_heads)
    q = rotary(rms_norm(q, w.master("q_norm.weight"), c.rms_norm_eps), places, c.rope_theta)
    both, all_places = torch.cat((context, rows), dim=1), torch.cat((positions, places), dim=1)
    k = _heads(both, w, "k", c.num_key_value_heads)
    k = rotary(rms_norm(k, w.master("k_norm.weight"), c.rms_norm_eps), all_places, c.rope_theta)
    v = _heads(both, w, "v", c.num_key_value_heads)
    q, k, v = (part.transpose(1, 2) for part in (q, k, v))
    k, v = (part.repeat_interleave(c.num_attention_heads // c.num_key_value_heads, dim=1) for part in (k, v))
    o = F.scaled_dot_product_attention(q, k, v, attn_mask=blocks.visible[:, None])
    return F.linear(o.transpose(1, 2).flatten(2), w("o_proj.weight")).view_as(h)


def _heads(rows: Tensor, w: Weights, part: str, heads: int) -> Tensor:
    projected: Tensor = F.linear(rows, w(f"{part}_proj.weight")).unflatten(-1, (heads, -1))
    return projected


def _swiglu(h: Tensor, w: Weights) -> Tensor:
    gate, up = F.linear(h, w("gate_proj.weight", "up_proj.weight")).chunk(2, dim=-1)
    return F.linear(F.silu(gate) * up, w("down_proj.weight"))
