"""Definition of the hyper-connection: coefficients from all four streams, a Sinkhorn-normalised mix, all in fp32.

Rows of `fn`, `base` and the coefficients: 0-3 pre, 4-7 post, 8-23 comb (row-major, source stream first).
"""

from dataclasses import dataclass

import torch

from twinspark_kernels.linear import linear
from twinspark_kernels.row_class import RowClass
from twinspark_kernels.sigmoid import sigmoid

STREAMS = 4
COEFFICIENTS = STREAMS + STREAMS + STREAMS * STREAMS
SCALE_OF_COEFFICIENT = torch.tensor([0] * STREAMS + [1] * STREAMS + [2] * STREAMS * STREAMS)


@dataclass(frozen=True, slots=True)
class Coefficients:
    """Parameters of one site: fn [24, 4 D], base [24], scale [3] (pre, post, comb) and the constants of the config."""

    fn: torch.Tensor
    base: torch.Tensor
    scale: torch.Tensor
    rms_eps: float
    hc_eps: float
    sinkhorn_iters: int


def hc_pre(
    streams: torch.Tensor, site: Coefficients, row_class: RowClass
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """branch [T, D], post [T, 4], comb [T, 4, 4] from streams [T, 4, D]."""
    values = streams.float()
    flat = values.flatten(1)
    rms = torch.rsqrt(flat.square().mean(-1, keepdim=True) + site.rms_eps)
    scale = site.scale.index_select(0, SCALE_OF_COEFFICIENT.to(site.scale.device))
    logits = linear(flat, site.fn, row_class=row_class) * rms * scale + site.base
    gate_logits, comb_logits = logits.split_with_sizes((2 * STREAMS, STREAMS * STREAMS), 1)
    pre_gate, post_gate = sigmoid(gate_logits).chunk(2, 1)
    pre, post = pre_gate + site.hc_eps, post_gate * 2.0
    start = torch.softmax(comb_logits.view(-1, STREAMS, STREAMS), -1) + site.hc_eps
    comb = sinkhorn(start, site.hc_eps, site.sinkhorn_iters)
    # Added stream by stream: a sum over an axis that is not the last may change with the number of rows.
    first, second, third, fourth = (values * pre.unsqueeze(2)).unbind(1)
    return (first + second).add_(third).add_(fourth).to(streams.dtype), post, comb


def sinkhorn(comb: torch.Tensor, eps: float, iterations: int) -> torch.Tensor:
    """[T, 4, 4] with columns, then (rows, columns) `iterations` - 1 times, divided by (their sum + eps).

    The sums are products with a matrix of ones, one small matrix a row: they are added in index order whatever
    T is, arrive broadcast, and take one call where a sum takes three.
    """
    eps_matrix = comb.new_full((1, STREAMS, STREAMS), eps).expand_as(comb)
    ones = comb.new_ones((1, STREAMS, STREAMS)).expand_as(comb)
    sums = torch.baddbmm(eps_matrix, ones, comb)
    result = comb / sums
    for _ in range(iterations - 1):
        torch.baddbmm(eps_matrix, result, ones, out=sums)
        result.div_(sums)
        torch.baddbmm(eps_matrix, ones, result, out=sums)
        result.div_(sums)
    return result


def hc_post(streams: torch.Tensor, y: torch.Tensor, post: torch.Tensor, comb: torch.Tensor) -> torch.Tensor:
    """[T, 4, D] from streams [T, 4, D], y [T, D], post [T, 4], comb [T, 4, 4] (source, target): comb transposed."""
    result = y.float().unsqueeze(1) * post.unsqueeze(2)
    product = torch.empty_like(result)
    for weights, source in zip(comb.unsqueeze(3).unbind(1), streams.float().unsqueeze(2).unbind(1), strict=True):
        result.add_(torch.mul(weights, source, out=product))
    return result.to(streams.dtype)
