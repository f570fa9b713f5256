"""Chains of elementwise work in the tower, plain or fused by torch.compile. Statistics and rotations are fp32."""

from collections.abc import Callable
from dataclasses import dataclass, fields

import torch
import torch.nn.functional as F
from torch import Tensor


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x [..., D] over its root mean square, times weight [D] fp32."""
    return F.rms_norm(x.float(), (x.shape[-1],), weight, eps).to(x.dtype)


def turned(x: Tensor, weight: Tensor, angles: Tensor, eps: float) -> Tensor:
    """x [B, N, H, K] normed a head with weight [K], then turned by angles fp32 [B, N, K / 2]: half against half."""
    normed = F.rms_norm(x.float(), (x.shape[-1],), weight, eps).to(x.dtype).float()
    first, second = normed.chunk(2, dim=-1)
    cos, sin = angles.cos()[:, :, None], angles.sin()[:, :, None]
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1).to(x.dtype)


def clamped_swiglu(gate: Tensor, up: Tensor, limit: float) -> Tensor:
    """silu(min(gate, limit)) * clip(up, -limit, limit)."""
    return (F.silu(gate.float().clamp(max=limit)) * up.float().clamp(-limit, limit)).to(gate.dtype)


def normed_gelu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """x [..., D] after a layer norm (eps 1e-5) and the exact GELU."""
    return F.gelu(F.layer_norm(x.float(), (x.shape[-1],), weight, bias)).to(x.dtype)


@dataclass(frozen=True)
class TowerChains:
    """The functions above as the tower calls them."""

    rms_norm: Callable[[Tensor, Tensor, float], Tensor] = rms_norm
    turned: Callable[[Tensor, Tensor, Tensor, float], Tensor] = turned
    clamped_swiglu: Callable[[Tensor, Tensor, float], Tensor] = clamped_swiglu
    normed_gelu: Callable[[Tensor, Tensor, Tensor], Tensor] = normed_gelu

    @classmethod
    def build(cls, compiled: bool) -> "TowerChains":
        """Plain functions, or each of them compiled for fixed shapes."""
        plain = cls()
        if not compiled:
            return plain
        return cls(**{part.name: torch.compile(getattr(plain, part.name), dynamic=False) for part in fields(cls)})
