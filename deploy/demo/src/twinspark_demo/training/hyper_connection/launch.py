"""Shape of each kernel's launch: tokens a program, warps, channels at a time, stages of the loads before the dots."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class Launch:
    """`chunk` and `stages` are read by the two kernels that pass over the streams with dots, in pieces of channels."""

    block: int
    warps: int
    chunk: int = 0
    stages: int = 1

    def programs(self, rows: int) -> tuple[int]:
        """Grid for `rows` tokens."""
        return (-(-rows // self.block),)

    def width_of_chunk(self, width: int) -> int:
        """Channels at a time, of `width`."""
        return min(self.chunk, width)


# For D = 256 in bf16 on sm_90: no spills, and at least 16 warps on a multiprocessor by their registers.
LAUNCHES = {
    "streams_forward": Launch(64, 4, chunk=64, stages=3),
    "streams_backward": Launch(32, 8, chunk=128),
    "coefficients_forward": Launch(32, 4),
    "coefficients_backward": Launch(32, 4),
    "post_forward": Launch(4, 4),
    "post_backward": Launch(4, 4),
}
# fp32 streams: dots without tensor cores, whose operands are in registers.
FP32_STREAMS = Launch(32, 8, chunk=32)


def launch_of(kernel: str, dtype: torch.dtype) -> Launch:
    """Launch of a kernel, for streams of `dtype`."""
    if dtype == torch.float32 and kernel.startswith("streams_"):
        return FP32_STREAMS
    return LAUNCHES[kernel]
