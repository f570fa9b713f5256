"""Quantizes matrices to EXL3 and back: one, or all experts of a model in large batches."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from twinspark_demo.quantization.exl3_tensors import Exl3Tensors
from twinspark_demo.quantization.global_scale import find_scale
from twinspark_demo.quantization.rotation import draw_scales, restore, rotate
from twinspark_demo.quantization.viterbi import Progress, encode_tiles
from twinspark_kernels.exl3 import TILE, Codebook, decode_tiles, pack_states, to_stream_order
from twinspark_kernels.hadamard import BLOCK

BITS = 4


def quantize_matrix(
    weight: Tensor, bits: int = BITS, codebook: Codebook = Codebook.MCG, generator: torch.Generator | None = None
) -> Exl3Tensors:
    """EXL3 of weight [out, in], both multiples of 128, of any float dtype; the search runs where the weight lies.

    The generator is a CPU's; without one the signs are those of seed 0. ValueError for other shapes.
    """
    generator = generator or torch.Generator().manual_seed(0)
    return _quantize([weight], bits, codebook, generator, None)[0]


def quantize_experts(
    matrices: Mapping[str, Tensor], device: torch.device, progress: Progress | None = None, seed: int = 0
) -> dict[str, Exl3Tensors]:
    """EXL3 (mcg, 4 bits) of many weights [out, in] by name; those of one shape are searched together on the device.

    progress(done, all) counts tiles of one shape after another. The result lies on the CPU.
    """
    generator = torch.Generator().manual_seed(seed)
    quantized: dict[str, Exl3Tensors] = {}
    for shape in dict.fromkeys(weight.shape for weight in matrices.values()):
        names = [name for name, weight in matrices.items() if weight.shape == shape]
        weights = [matrices[name].to(device) for name in names]
        quantized |= zip(names, _quantize(weights, BITS, Codebook.MCG, generator, progress), strict=True)
    return {name: quantized[name] for name in matrices}


def dequantize(tensors: Exl3Tensors) -> Tensor:
    """The weight fp32 [out, in] that the engine's product applies, but for its rounding of the rotated input."""
    inner = decode_tiles(tensors.trellis, tensors.codebook).float()
    return restore(inner, tensors.suh, tensors.svh).t().contiguous()


@torch.no_grad()
def _quantize(
    weights: Sequence[Tensor], bits: int, codebook: Codebook, generator: torch.Generator, progress: Progress | None
) -> list[Exl3Tensors]:
    """Matrices of one shape; one global scale for all of them, found on a sample of their tiles."""
    stack = torch.stack([weight.detach().float().t() for weight in weights])
    _, rows, columns = stack.shape
    if rows % BLOCK or columns % BLOCK:
        raise ValueError(f"a weight is [{columns}, {rows}]: both must be multiples of {BLOCK}")
    su, sv = draw_scales(stack, generator)
    scale = find_scale(_tiles(rotate(stack, su, sv)), bits, codebook)
    suh, svh = (su / scale).half(), sv.half()
    states = encode_tiles(_tiles(rotate(stack, suh.float(), svh.float())), bits, codebook, progress)
    grid = states.view(len(weights), rows // TILE, columns // TILE, -1).cpu()
    scales = zip(suh.cpu(), svh.cpu(), strict=True)
    return [
        Exl3Tensors(pack_states(part, bits), one_suh.clone(), one_svh.clone(), codebook)
        for part, (one_suh, one_svh) in zip(grid, scales, strict=True)
    ]


def _tiles(inner: Tensor) -> Tensor:
    """[M, K, N] -> [M * K/16 * N/16, 256] in stream order."""
    return to_stream_order(inner.flatten(0, 1)).flatten(0, 1)
