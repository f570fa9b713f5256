"""Sigmoid and SiLU built from exp and division, whose bits do not depend on an element's place in a tensor.

`torch.sigmoid` and `torch.nn.functional.silu` send the last elements of a tensor through other code than the
rest, so a row changes with its neighbours; exp, addition and division do not.
"""

import torch


def sigmoid(x: torch.Tensor) -> torch.Tensor:
    """1 / (1 + exp(-x)), elementwise, in the dtype of `x` (use fp32)."""
    return torch.exp(-x).add_(1.0).reciprocal_()


def silu(x: torch.Tensor) -> torch.Tensor:
    """x / (1 + exp(-x)), elementwise, in the dtype of `x` (use fp32)."""
    return x / torch.exp(-x).add_(1.0)
