"""Trainable hyper-connections over four residual streams: `hc_pre` before a branch, `hc_post` after it.

CUDA tensors run the Triton kernels, CPU tensors the reference. Formulas: `reference.py`.
"""

import torch

from twinspark_demo.training.hyper_connection import reference
from twinspark_demo.training.hyper_connection.reference import COEFFICIENTS, STREAMS

__all__ = ["STREAMS", "hc_post", "hc_pre"]


def hc_pre(
    streams: torch.Tensor,
    fn: torch.Tensor,
    base: torch.Tensor,
    scale: torch.Tensor,
    *,
    rms_eps: float = 1e-5,
    hc_eps: float = 1e-6,
    sinkhorn_iters: int = 20,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Collapse the streams into the input of a branch, and compute how its output goes back.

    streams [N, 4, D], bf16 or fp32, D a power of two of at least 32 on CUDA; fn [24, 4 D], base [24], scale [3] (pre,
    post, comb), fp32. bf16 streams see fn rounded to bf16, as a checkpoint stores it; its gradient is fp32.
    Returns u [N, D] in the dtype of the streams, post [N, 4] fp32, comb [N, 4, 4] fp32 (source, target).
    ValueError for another shape.
    """
    width = _width(streams)
    if fn.shape != (COEFFICIENTS, STREAMS * width) or base.shape != (COEFFICIENTS,) or scale.shape != (3,):
        raise ValueError(f"fn, base, scale: got {tuple(fn.shape)}, {tuple(base.shape)}, {tuple(scale.shape)}")
    if not streams.is_cuda:
        return reference.hc_pre(streams, fn, base, scale, rms_eps=rms_eps, hc_eps=hc_eps, sinkhorn_iters=sinkhorn_iters)
    # Here, because a machine without a GPU may have no Triton.
    from twinspark_demo.training.hyper_connection.function import HyperConnectionPre

    u, post, comb = HyperConnectionPre.apply(streams, fn, base, scale, rms_eps, hc_eps, sinkhorn_iters)
    return u, post, comb


def hc_post(streams: torch.Tensor, y: torch.Tensor, post: torch.Tensor, comb: torch.Tensor) -> torch.Tensor:
    """Return the new streams [N, 4, D]: post[s] * y + sum over j of comb[j, s] * streams[j], in the dtype of `streams`.

    streams [N, 4, D], y [N, D], bf16 or fp32; post [N, 4], comb [N, 4, 4] fp32. ValueError for another shape.
    """
    rows, width = streams.shape[0], _width(streams)
    if y.shape != (rows, width) or post.shape != (rows, STREAMS) or comb.shape != (rows, STREAMS, STREAMS):
        raise ValueError(f"y, post, comb: got {tuple(y.shape)}, {tuple(post.shape)}, {tuple(comb.shape)}")
    if not streams.is_cuda:
        return reference.hc_post(streams, y, post, comb)
    from twinspark_demo.training.hyper_connection.function import HyperConnectionPost

    out: torch.Tensor = HyperConnectionPost.apply(streams, y, post, comb)
    return out


def _width(streams: torch.Tensor) -> int:
    """D of the streams."""
    if streams.dim() != 3 or streams.shape[1] != STREAMS:
        raise ValueError(f"streams: must be [rows, {STREAMS}, width], got shape {tuple(streams.shape)}")
    width = streams.shape[2]
    if streams.is_cuda and (width < 32 or width & (width - 1)):
        raise ValueError(f"streams: width must be a power of two of at least 32 on CUDA, got {width}")
    return width
