"""The Triton kernels as a function that autograd knows. No value is read on the host: a CUDA graph can capture it."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from twinspark_demo.training.kda_recurrence.chunked import CHUNK
from twinspark_demo.training.kda_recurrence.kernel import prepare_kernel, record_size, scan_kernel
from twinspark_demo.training.kda_recurrence.kernel_backward import gradient_kernel, scan_back_kernel


@dataclass(frozen=True, slots=True)
class Launch:
    """How the kernels run.

    precision: of tl.dot; block, gradient_block: columns of S that a program takes at a time; stages: chunks whose loads
    a pass has under way.
    """

    precision: str
    block: int = 16
    scan_warps: int = 1
    stages: int = 3
    prepare_warps: int = 2
    gradient_block: int = 16
    gradient_warps: int = 4


# TF32 adds errors of 1e-3 to those of 4e-3 that rows in bf16 carry. Three products in TF32 are as good as one in fp32.
LAUNCHES = {
    torch.bfloat16: Launch("tf32"),
    torch.float32: Launch("tf32x3", scan_warps=2),
}


@dataclass(frozen=True, slots=True)
class Saved:
    """What the backward needs beside the inputs: 1.9 KiB a token and head at K = V = 64 and bf16.

    work and written (E) fp32, states (S before each chunk) in the dtype of v; shapes in `kernel.py`.
    """

    work: Tensor
    states: Tensor
    written: Tensor


def forward(rows: tuple[Tensor, ...], launch: Launch) -> tuple[Tensor, Saved]:
    """o and what the backward needs; rows: q, k, v, log_decay, beta, starts (uint8), all contiguous."""
    q, _, v, *_ = rows
    B, T, H, K = q.shape
    num_chunks = -(-T // CHUNK)
    saved = Saved(
        q.new_empty(B * H, num_chunks, record_size(K, v.shape[-1]), dtype=torch.float32),
        v.new_empty(B * H, num_chunks, K, v.shape[-1]),
        v.new_empty(B * H, num_chunks, CHUNK, v.shape[-1], dtype=torch.float32),
    )
    prepare(rows, saved, launch)
    return scan(rows, saved, launch), saved


def prepare(rows: tuple[Tensor, ...], saved: Saved, launch: Launch) -> None:
    """Fill saved.work."""
    options = _options(rows, launch, launch.prepare_warps)
    prepare_kernel[saved.states.shape[1::-1]](*rows, saved.work, rows[0].shape[1], **options)


def scan(rows: tuple[Tensor, ...], saved: Saved, launch: Launch) -> Tensor:
    """o from saved.work; fills saved.states and saved.written."""
    v = rows[2]
    o = torch.empty_like(v)
    options = _options(rows, launch, launch.scan_warps) | {"BV": launch.block, "STAGES": launch.stages}
    grid = (v.shape[-1] // launch.block, saved.states.shape[0])
    scan_kernel[grid](saved.work, saved.states, saved.written, o, v.shape[1], **options)
    return o


def scan_back(rows: tuple[Tensor, ...], saved: Saved, d_o: Tensor, launch: Launch) -> tuple[Tensor, Tensor]:
    """Gradients of the states behind each chunk and of E."""
    v = rows[2]
    d_states, d_written = torch.empty_like(saved.states), torch.empty_like(saved.written)
    options = _options(rows, launch, launch.scan_warps) | {"BV": launch.block, "STAGES": launch.stages}
    grid = (v.shape[-1] // launch.block, saved.states.shape[0])
    scan_back_kernel[grid](saved.work, d_o, d_states, d_written, v.shape[1], **options)
    return d_states, d_written


def gradients(
    rows: tuple[Tensor, ...], saved: Saved, d_o: Tensor, behind: tuple[Tensor, Tensor], launch: Launch
) -> list[Tensor]:
    """Gradients of q, k, v, log_decay, beta; `behind` is what scan_back returns."""
    found = [torch.empty_like(x) for x in rows[:5]]
    options = _options(rows, launch, launch.gradient_warps) | {"BV": launch.gradient_block}
    inside = (saved.work, saved.states, saved.written, d_o, *behind)
    gradient_kernel[saved.states.shape[1::-1]](*rows, *inside, *found, rows[0].shape[1], **options)
    return found


def _options(rows: tuple[Tensor, ...], launch: Launch, num_warps: int) -> dict[str, Any]:
    H, K = rows[0].shape[2:]
    return {"H": H, "K": K, "V": rows[2].shape[-1], "PRECISION": launch.precision, "num_warps": num_warps}


class KdaRecurrence(torch.autograd.Function):
    """forward(launch, q, k, v, log_decay, beta, starts (uint8)), all contiguous."""

    @staticmethod
    def forward(ctx: Any, launch: Launch, *rows: Tensor) -> Tensor:
        """See `kda_recurrence`."""
        o, saved = forward(rows, launch)
        ctx.save_for_backward(*rows, saved.work, saved.states, saved.written)
        ctx.launch = launch
        return o

    @staticmethod
    def backward(ctx: Any, d_o: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of all but launch and starts."""
        rows, saved = ctx.saved_tensors[:6], Saved(*ctx.saved_tensors[6:])
        d_o = d_o.contiguous()
        behind = scan_back(rows, saved, d_o, ctx.launch)
        return None, *gradients(rows, saved, d_o, behind, ctx.launch), None


def kda_recurrence(
    q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, beta: Tensor, starts: Tensor, launch: Launch | None = None
) -> Tensor:
    """o [B, T, H, V] in the dtype of v; arguments as in the public op, and how to run if not as LAUNCHES says."""
    starts = starts.view(torch.uint8) if starts.dtype == torch.bool else starts
    rows = (x.contiguous() for x in (q, k, v, log_decay, beta, starts))
    out: Tensor = KdaRecurrence.apply(launch or LAUNCHES[v.dtype], *rows)
    return out
