"""Blockwise 128-point Hadamard transform and the two rotations of an EXL3 linear.

`hadamard` transforms the last axis, `rotate_in` prepares the operand of an EXL3 product and `rotate_out` finishes its
result. CPU tensors run the reference. CONTRACT.md, where it differs from the common answers:
1. Inputs: the last axis is a multiple of 128; scales are fp16 as stored.
3. Arithmetic: an fp32 butterfly with strides 1, 2, ..., 64 in that order, exact to the bit; `rotate_in` rounds x, the
   scaled x and its result to fp16.
"""

import torch

from twinspark_kernels.hadamard import reference
from twinspark_kernels.hadamard.reference import BLOCK, SCALE

__all__ = ["BLOCK", "SCALE", "hadamard", "rotate_in", "rotate_out"]


def hadamard(x: torch.Tensor) -> torch.Tensor:
    """Return H x per block of 128 along the last axis: fp32, the shape of `x` ([..., n], n a multiple of 128)."""
    _check_blocks("x", x)
    return reference.hadamard(x)


def rotate_in(x: torch.Tensor, suh: torch.Tensor) -> torch.Tensor:
    """Return fp16(H fp16(fp16(x) * suh)): fp16 [..., K], the left operand of an EXL3 product.

    x [..., K] of any float dtype; suh fp16 [..., K], broadcast against x (one vector, or one for each row).
    """
    _check_blocks("x", x)
    _check_scale("suh", suh, x.shape[-1])
    return reference.rotate_in(x, suh)


def rotate_out(y: torch.Tensor, svh: torch.Tensor) -> torch.Tensor:
    """Return (H y) * svh in fp32: [..., N], the result of an EXL3 product.

    y fp32 [..., N]; svh fp16 [..., N], broadcast against y (one vector, or one for each row).
    """
    _check_blocks("y", y)
    _check_scale("svh", svh, y.shape[-1])
    return reference.rotate_out(y, svh)


def _check_blocks(name: str, tensor: torch.Tensor) -> None:
    if tensor.dim() == 0 or tensor.shape[-1] % BLOCK != 0:
        raise ValueError(f"{name}: the last axis must be a multiple of {BLOCK}, got shape {tuple(tensor.shape)}")


def _check_scale(name: str, scale: torch.Tensor, width: int) -> None:
    if scale.dtype != torch.float16:
        raise TypeError(f"{name}: must be float16 as stored in the checkpoint, got {scale.dtype}")
    if scale.shape[-1] != width:
        raise ValueError(f"{name}: the last axis must have {width} entries, got shape {tuple(scale.shape)}")
