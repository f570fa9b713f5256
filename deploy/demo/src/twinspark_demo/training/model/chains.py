"""Chains of elementwise work, each one function of tensors: plain, or fused by torch.compile on the device.

Statistics, gates and losses are fp32; what leaves for a product is in the dtype of the input. Formulas: GLM-5.3-Flash.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields

import torch
import torch._dynamo.config as dynamo_config
import torch.nn.functional as F
from torch import Tensor

TAPS = 4
L2_EPS = 1e-6
RECOMPILE_LIMIT = 64  # one variant a shape of batch, with and without gradients


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x [..., D] over its root mean square, times weight [D] fp32."""
    return F.rms_norm(x.float(), (x.shape[-1],), weight, eps).to(x.dtype)


def clamped_swiglu(gate_up: Tensor, limit: float) -> Tensor:
    """[N, 2 W], gate first -> [N, W]: silu(min(gate, limit)) * clip(up, -limit, limit)."""
    gate, up = gate_up.float().chunk(2, dim=-1)
    return (F.silu(gate.clamp(max=limit)) * up.clamp(-limit, limit)).to(gate_up.dtype)


def kda_inputs(qkv: Tensor, taps: Tensor, positions: Tensor, head_dim: int) -> tuple[Tensor, Tensor, Tensor]:
    """qkv [B, T, 3 C] (pre-conv), taps [3 C, 4] fp32, the last one on the current row -> q, k, v [B, T, H, K].

    A tap that reaches before the document's first row counts as 0. q and k have length 1, q times K^-0.5.
    """
    width = qkv.shape[1]
    padded = F.pad(qkv, (0, 0, TAPS - 1, 0))
    total = qkv.float() * taps[:, TAPS - 1]
    for back in range(1, TAPS):
        inside = (positions >= back)[..., None]
        start = TAPS - 1 - back
        total = total + torch.where(inside, padded[:, start : start + width].float(), 0.0) * taps[:, start]
    mixed = F.silu(total).to(qkv.dtype).float().unflatten(-1, (3, -1, head_dim))
    q, k, v = mixed.unbind(2)
    q = q * torch.rsqrt(q.square().sum(-1, keepdim=True) + L2_EPS) * head_dim**-0.5
    k = k * torch.rsqrt(k.square().sum(-1, keepdim=True) + L2_EPS)
    return q.to(qkv.dtype), k.to(qkv.dtype), v.to(qkv.dtype)


def kda_gates(forget: Tensor, bias: Tensor, log_rate: Tensor, b: Tensor, lower_bound: float) -> tuple[Tensor, Tensor]:
    """forget [B, T, C], bias [C], log_rate [H], b [B, T, H] -> log decay fp32 [B, T, H, K] <= 0, beta [B, T, H]."""
    a = (forget.float() + bias).unflatten(-1, (log_rate.shape[0], -1))
    return lower_bound * torch.sigmoid(log_rate.exp()[:, None] * a), torch.sigmoid(b.float())


def gated_norm(o: Tensor, gate: Tensor, weight: Tensor, eps: float) -> Tensor:
    """o [B, T, H, K] normed a head, times weight [K] and sigmoid(gate [B, T, H K]) -> [B, T, H K]."""
    normed = F.rms_norm(o.float(), (o.shape[-1],), weight, eps).flatten(-2)
    y = normed * torch.sigmoid(gate.float())
    return y.to(gate.dtype)


def combine_experts(routed: Tensor, weights: Tensor, shared: Tensor) -> Tensor:
    """routed [N, k, D] times weights [N, k] fp32, summed over the slots, plus shared [N, D]."""
    total: Tensor = (routed.float() * weights[..., None]).sum(1) + shared.float()
    return total.to(shared.dtype)


def pool_keys(keys: Tensor, gates: Tensor, ape: Tensor) -> Tensor:
    """keys, gates [B, T, D], ape [pool, D] -> [B, T / pool, D]: a softmax over the pool's members in each channel."""
    pool = ape.shape[0]
    shares = torch.softmax(gates.float().unflatten(1, (-1, pool)) + ape, dim=2)
    pooled: Tensor = (shares * keys.float().unflatten(1, (-1, pool))).sum(2)
    return pooled.to(keys.dtype)


def weigh_heads(dots: Tensor, weights: Tensor, scale: float) -> Tensor:
    """dots fp32 [B, H, Q, P], weights fp32 [B, Q, H] -> index scores fp32 [B, Q, P]: sum_h w_h relu(dot_h scale)."""
    return (torch.relu(dots * scale) * weights.transpose(1, 2)[..., None]).sum(1)


def cross_entropy(logits: Tensor, targets: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """logits [N, V], targets [N], weights [N] -> weighted mean loss; bool [N]: the target was the most likely."""
    values = logits.float()
    columns = torch.arange(values.shape[-1], device=values.device)
    picked = torch.where(columns == targets[:, None], values, 0.0).sum(-1)
    loss = ((torch.logsumexp(values, -1) - picked) * weights).sum() / weights.sum().clamp(min=1e-6)
    return loss, values.argmax(-1) == targets


def stream_mean(streams: Tensor) -> Tensor:
    """[N, 4, D] -> [N, D]."""
    return streams.float().mean(1).to(streams.dtype)


@dataclass(frozen=True)
class Chains:
    """The functions above as the model calls them."""

    rms_norm: Callable[[Tensor, Tensor, float], Tensor] = rms_norm
    clamped_swiglu: Callable[[Tensor, float], Tensor] = clamped_swiglu
    kda_inputs: Callable[[Tensor, Tensor, Tensor, int], tuple[Tensor, Tensor, Tensor]] = kda_inputs
    kda_gates: Callable[[Tensor, Tensor, Tensor, Tensor, float], tuple[Tensor, Tensor]] = kda_gates
    gated_norm: Callable[[Tensor, Tensor, Tensor, float], Tensor] = gated_norm
    combine_experts: Callable[[Tensor, Tensor, Tensor], Tensor] = combine_experts
    pool_keys: Callable[[Tensor, Tensor, Tensor], Tensor] = pool_keys
    weigh_heads: Callable[[Tensor, Tensor, float], Tensor] = weigh_heads
    cross_entropy: Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]] = cross_entropy
    stream_mean: Callable[[Tensor], Tensor] = stream_mean

    @classmethod
    def build(cls, compiled: bool) -> "Chains":
        """Plain functions, or each of them compiled for fixed shapes."""
        plain = cls()
        if not compiled:
            return plain
        dynamo_config.recompile_limit = RECOMPILE_LIMIT
        return cls(**{part.name: torch.compile(getattr(plain, part.name), dynamic=False) for part in fields(cls)})
