"""Autograd functions over the Triton kernels. Nothing here waits for the device: all of it can be captured in a graph.

For CUDA tensors, or CPU tensors in Triton's interpreter; streams in bf16 or fp32.
"""

from typing import Any

import torch

from twinspark_demo.training.hyper_connection.launch import launch_of
from twinspark_demo.training.hyper_connection.post_kernel import post_backward, post_forward
from twinspark_demo.training.hyper_connection.pre_kernel import streams_backward, streams_forward
from twinspark_demo.training.hyper_connection.reference import COEFFICIENTS, STREAMS
from twinspark_demo.training.hyper_connection.sinkhorn_kernel import coefficients_backward, coefficients_forward


class HyperConnectionPre(torch.autograd.Function):
    """(streams, fn, base, scale, rms_eps, hc_eps, sinkhorn_iters) -> (u, post, comb), as `reference.hc_pre`."""

    @staticmethod
    def forward(
        ctx: Any,
        streams: torch.Tensor,
        fn: torch.Tensor,
        base: torch.Tensor,
        scale: torch.Tensor,
        rms_eps: float,
        hc_eps: float,
        sinkhorn_iters: int,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        streams, rounded = streams.contiguous(), fn.to(streams.dtype).contiguous()
        base, scale = base.contiguous(), scale.contiguous()
        rows, _, width = streams.shape
        u = streams.new_empty(rows, width)
        mix, rms = base.new_empty(rows, COEFFICIENTS), base.new_empty(rows)
        launch = launch_of("streams_forward", streams.dtype)
        streams_forward[launch.programs(rows)](
            *(streams, rounded, base, scale, u, mix, rms, rows, rms_eps, hc_eps),
            WIDTH=width,
            BLOCK=launch.block,
            CHUNK=launch.width_of_chunk(width),
            num_warps=launch.warps,
            num_stages=launch.stages,
        )
        post, comb = base.new_empty(rows, STREAMS), base.new_empty(rows, STREAMS, STREAMS)
        launch = launch_of("coefficients_forward", streams.dtype)
        coefficients_forward[launch.programs(rows)](
            *(mix, base, scale, post, comb, rows, hc_eps, sinkhorn_iters), BLOCK=launch.block, num_warps=launch.warps
        )
        ctx.save_for_backward(streams, rounded, base, scale, mix, rms)
        ctx.hc_eps, ctx.sinkhorn_iters = hc_eps, sinkhorn_iters
        return u, post, comb

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        d_u, d_post, d_comb = (gradient.contiguous() for gradient in gradients)
        streams, fn, base, scale, mix, rms = ctx.saved_tensors
        d_logits = _coefficients_backward(ctx, d_post, d_comb)
        rows, _, width = streams.shape
        launch = launch_of("streams_backward", streams.dtype)
        programs = launch.programs(rows)
        d_streams, d_dots = torch.empty_like(streams), streams.new_empty(rows, COEFFICIENTS)
        partial = base.new_empty(programs[0], 32)
        streams_backward[programs](
            *(d_u, d_logits, streams, fn, base, scale, mix, rms, d_streams, d_dots, partial, rows, ctx.hc_eps),
            WIDTH=width,
            BLOCK=launch.block,
            CHUNK=launch.width_of_chunk(width),
            num_warps=launch.warps,
            num_stages=launch.stages,
        )
        d_fn = _product(d_dots.T, streams.flatten(1)) if ctx.needs_input_grad[1] else None
        sums = partial.sum(0)
        return d_streams, d_fn, sums[:COEFFICIENTS], sums[COEFFICIENTS : COEFFICIENTS + 3], None, None, None


def _coefficients_backward(ctx: Any, d_post: torch.Tensor, d_comb: torch.Tensor) -> torch.Tensor:
    """d_logits [N, 24], columns 4..23 only."""
    streams, _, base, scale, mix, _ = ctx.saved_tensors
    rows = mix.shape[0]
    launch = launch_of("coefficients_backward", streams.dtype)
    d_logits = torch.empty_like(mix)
    sums = mix.new_empty(2 * ctx.sinkhorn_iters - 1, rows, STREAMS)
    coefficients_backward[launch.programs(rows)](
        *(d_post, d_comb, mix, base, scale, d_logits, sums, rows, ctx.hc_eps, ctx.sinkhorn_iters),
        BLOCK=launch.block,
        num_warps=launch.warps,
    )
    return d_logits


def _product(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """left @ right in fp32; on CUDA without a copy of bf16 operands in fp32."""
    if left.is_cuda and left.dtype != torch.float32:
        return torch.mm(left, right, out_dtype=torch.float32)
    return left.float() @ right.float()


class HyperConnectionPost(torch.autograd.Function):
    """(streams, y, post, comb) -> new streams, as `reference.hc_post`."""

    @staticmethod
    def forward(
        ctx: Any, streams: torch.Tensor, y: torch.Tensor, post: torch.Tensor, comb: torch.Tensor
    ) -> torch.Tensor:
        streams, y, post, comb = (tensor.contiguous() for tensor in (streams, y, post, comb))
        rows, _, width = streams.shape
        out = torch.empty_like(streams)
        launch = launch_of("post_forward", streams.dtype)
        post_forward[launch.programs(rows)](
            *(streams, y, post, comb, out, rows), WIDTH=width, BLOCK=launch.block, num_warps=launch.warps
        )
        ctx.save_for_backward(streams, y, post, comb)
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, ...]:
        streams, y, post, comb = ctx.saved_tensors
        rows, _, width = streams.shape
        outputs = tuple(torch.empty_like(tensor) for tensor in (streams, y, post, comb))
        launch = launch_of("post_backward", streams.dtype)
        post_backward[launch.programs(rows)](
            *(gradients[0].contiguous(), streams, y, post, comb, *outputs, rows),
            WIDTH=width,
            BLOCK=launch.block,
            num_warps=launch.warps,
        )
        return outputs
