"""Hyper-connections over four residual streams: `hc_pre` before a branch, `hc_post` after it.

CPU tensors run the reference. CONTRACT.md, where it differs from the common answers:
1. Inputs: streams are contiguous; parameters and coefficients are fp32.
3. Arithmetic: dots through `linear`; sums of four in index order; branch and streams rounded once (README.md).
8. Limits: 4 D at most 32,768.
"""

import torch

from twinspark_kernels.hyper_connection import reference
from twinspark_kernels.hyper_connection.reference import COEFFICIENTS, STREAMS
from twinspark_kernels.row_class import RowClass

__all__ = ["COEFFICIENTS", "STREAMS", "hc_post", "hc_pre"]


def hc_pre(
    streams: torch.Tensor,
    fn: torch.Tensor,
    base: torch.Tensor,
    scale: torch.Tensor,
    *,
    rms_eps: float,
    hc_eps: float,
    sinkhorn_iters: int,
    row_class: RowClass,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Collapse the streams into the input of a branch, and compute how its output goes back.

    streams [T, 4, D], contiguous, compute dtype; fn [24, 4 D], base [24], scale [3] (pre, post, comb), all fp32.
    Returns branch [T, D] in the dtype of the streams, post [T, 4] fp32, comb [T, 4, 4] fp32 (source, target).
    """
    _check_streams(streams)
    _check_fp32("fn", fn, (COEFFICIENTS, STREAMS * streams.shape[2]))
    _check_fp32("base", base, (COEFFICIENTS,))
    _check_fp32("scale", scale, (3,))
    if sinkhorn_iters < 1:
        raise ValueError(f"sinkhorn_iters: must be at least 1, got {sinkhorn_iters}")
    site = reference.Coefficients(fn, base, scale, rms_eps, hc_eps, sinkhorn_iters)
    return reference.hc_pre(streams, site, row_class)


def hc_post(streams: torch.Tensor, y: torch.Tensor, post: torch.Tensor, comb: torch.Tensor) -> torch.Tensor:
    """Return the new streams: post[s] * y + sum over j of comb[j, s] * streams[j]; shape and dtype of `streams`.

    streams [T, 4, D], y [T, D] (any float dtype: a branch output, or its fp32 sum over the ranks), post [T, 4] fp32,
    comb [T, 4, 4] fp32. Computed in fp32 and rounded once; the streams are not modified.
    """
    _check_streams(streams)
    rows, _, width = streams.shape
    if y.shape != (rows, width):
        raise ValueError(f"y: must be [{rows}, {width}], got shape {tuple(y.shape)}")
    _check_fp32("post", post, (rows, STREAMS))
    _check_fp32("comb", comb, (rows, STREAMS, STREAMS))
    return reference.hc_post(streams, y, post, comb)


def _check_streams(streams: torch.Tensor) -> None:
    if streams.dim() != 3 or streams.shape[1] != STREAMS or not streams.is_contiguous():
        raise ValueError(f"streams: must be contiguous [rows, {STREAMS}, width], got shape {tuple(streams.shape)}")


def _check_fp32(name: str, tensor: torch.Tensor, shape: tuple[int, ...]) -> None:
    if tensor.shape != shape or tensor.dtype != torch.float32:
        raise ValueError(f"{name}: must be float32 {list(shape)}, got {tensor.dtype} {list(tensor.shape)}")
