"""Candidates of a draw: the exact top of each row of logits, and the row's log of the sum of exponentials.

1. Inputs: logits [T, V] float32 or bfloat16 with V >= 1; `count` in [1, V]; `id_offset` is the id of column 0.
2. Outputs: new tensors, written in full: values [T, count] in the logits' dtype, ids [T, count] int64; [T] float64.
3. Arithmetic: comparisons only; the sum in float64, in blocks of 1,024 columns from the left, then over blocks.
4. Row invariance: both are functions of the row alone, at any number of rows and threads.
5. Rank order: each rank takes its own columns; the caller merges in rank order, which keeps the total order.
6. Side effects: none. Workspace: a few copies of the logits.
7. Graph capture: the reference reads the number of kept columns back and is not capturable.
8. Limits: int64 addressing; tested on CPU.
"""

from torch import Tensor

from twinspark_kernels.candidates import reference

__all__ = ["log_sum_exp", "top_candidates"]


def _check(logits: Tensor) -> None:
    if logits.dim() != 2 or logits.shape[1] < 1 or not logits.is_floating_point():
        raise ValueError(f"logits must be floating point [T, V] with V >= 1, got {logits.dtype} {tuple(logits.shape)}")


def top_candidates(logits: Tensor, count: int, id_offset: int) -> tuple[Tensor, Tensor]:
    """Largest logits of each row: values [T, count] and ids [T, count], by (value descending, id ascending), exact."""
    _check(logits)
    if not 1 <= count <= logits.shape[1]:
        raise ValueError(f"count must be in [1, {logits.shape[1]}], got {count}")
    return reference.top_candidates(logits, count, id_offset)


def log_sum_exp(logits: Tensor) -> Tensor:
    """Natural logarithm of the sum of exp of each row, float64 [T]."""
    _check(logits)
    return reference.log_sum_exp(logits)
