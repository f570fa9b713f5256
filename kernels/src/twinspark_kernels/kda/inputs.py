"""Inputs of the KDA ops, and what both forms compute from them before the recurrence."""

from dataclasses import dataclass

import torch
from torch import Tensor

from twinspark_kernels.sigmoid import sigmoid

NORM_EPS = 1e-6


@dataclass(frozen=True, slots=True)
class KdaInputs:
    """One row each: q, k [T, H, K] and v [T, H, V] behind the convolution; gate [T, H, K] and beta [T, H] raw."""

    q: Tensor
    k: Tensor
    v: Tensor
    gate: Tensor
    beta: Tensor


@dataclass(frozen=True, slots=True)
class KdaParams:
    """Weights of the forget gate: a_log fp32 [H], dt_bias fp32 [H, K]; log decays lie in (lower_bound, 0)."""

    a_log: Tensor
    dt_bias: Tensor
    lower_bound: float


@dataclass(frozen=True, slots=True)
class PreparedRows:
    """fp32: q, k, log_decay [T, H, K], v [T, H, V], beta [T, H]; q and k of unit length, q scaled by K^-0.5."""

    q: Tensor
    k: Tensor
    v: Tensor
    log_decay: Tensor
    beta: Tensor


def prepare_rows(inputs: KdaInputs, params: KdaParams) -> PreparedRows:
    """Normalise q and k, bound the gate, squash beta. Elementwise, or a sum over one head's channels."""
    qk = torch.stack((inputs.q, inputs.k)).float()
    qk /= (qk * qk).sum(-1, keepdim=True).add_(NORM_EPS).sqrt_()
    logits = (inputs.gate.float() + params.dt_bias.float()) * params.a_log.float().exp()[:, None]
    beta = sigmoid(inputs.beta.float())
    if inputs.q.dtype == torch.bfloat16:
        beta = beta.bfloat16().float()
    return PreparedRows(
        q=qk[0] * inputs.q.shape[-1] ** -0.5,
        k=qk[1],
        v=inputs.v.float(),
        log_decay=sigmoid(logits) * params.lower_bound,
        beta=beta,
    )
