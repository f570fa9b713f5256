"""Definition of the router: sigmoid scores, a biased choice, unbiased normalised weights, all in fp32."""

import torch

from twinspark_kernels.linear import linear
from twinspark_kernels.row_class import RowClass
from twinspark_kernels.sigmoid import sigmoid

NORMALIZER_EPS = 1e-20


def route(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, top_k: int, scaling: float, row_class: RowClass
) -> tuple[torch.Tensor, torch.Tensor]:
    """expert_ids [T, k] int64 and expert_weights [T, k] fp32, in rank order."""
    scores = sigmoid(linear(x, weight, row_class=row_class, out_dtype=torch.float32))
    # A stable sort, not topk, whose choice among equal scores is arbitrary.
    order = torch.sort(scores + bias, dim=-1, descending=True, stable=True).indices
    expert_ids = order[:, :top_k].contiguous()
    chosen = scores.gather(1, expert_ids)
    return expert_ids, chosen / (chosen.sum(-1, keepdim=True) + NORMALIZER_EPS) * scaling
