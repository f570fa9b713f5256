"""`python -m twinspark_demo.quantization.bench`: how fast random tiles are encoded, and how near."""

import time
from typing import Annotated

import torch
import typer
from torch import Tensor

from twinspark_demo.quantization import viterbi
from twinspark_demo.quantization.rotation import CODEBOOK_STD
from twinspark_kernels.exl3 import Codebook, codebook_table

SCALE = 0.9  # the global scale that such tiles get at 4 bits
CHECKED_TILES = 16
EQUAL_ERRORS = 1e-3  # relative; ties may go either way


def main(
    tiles: Annotated[int, typer.Option(min=1, help="How many.")] = 2048,
    batch: Annotated[int, typer.Option(min=1, help="Tiles searched at once on a GPU.")] = viterbi.DEVICE_BATCH,
    bits: Annotated[int, typer.Option(min=1, max=8, help="Bits a weight.")] = 4,
    device: Annotated[str, typer.Option(help="Where.")] = "cuda",
) -> None:
    """Encode random tiles with the mcg codebook on a device, and some of them on the CPU for comparison."""
    viterbi.DEVICE_BATCH = batch
    weights = (
        SCALE * CODEBOOK_STD * torch.randn(tiles, viterbi.TILE_WEIGHTS, generator=torch.Generator().manual_seed(0))
    )
    there = _moved(weights, device)
    _timed_encode(there[:batch], bits)
    states, seconds = _timed_encode(there, bits)
    error = _error(states.cpu(), weights)
    typer.echo(f"{1e3 * seconds / tiles:.3f} ms a tile, {seconds:.2f} s in all, mean squared error {error:.6f}")
    if device == "cpu":
        return
    on_cpu, _ = _timed_encode(weights[:CHECKED_TILES], bits)
    expected = _error(on_cpu, weights[:CHECKED_TILES])
    actual = _error(states[:CHECKED_TILES].cpu(), weights[:CHECKED_TILES])
    equal = float((on_cpu == states[:CHECKED_TILES].cpu()).float().mean())
    typer.echo(f"CPU: mean squared error {expected:.6f} against {actual:.6f}, {equal:.2%} of the states equal")
    if abs(actual - expected) > EQUAL_ERRORS * expected:
        raise typer.Exit(1)


def _moved(weights: Tensor, device: str) -> Tensor:
    try:
        return weights.to(device)
    except (RuntimeError, AssertionError) as error:  # AssertionError: PyTorch was built without CUDA
        reason = str(error).partition("\n")[0]
        raise typer.BadParameter(f"--device {device}: {reason}; --device cpu is always possible") from error


def _timed_encode(tiles: Tensor, bits: int) -> tuple[Tensor, float]:
    """States, and the seconds until they were there."""
    start = time.perf_counter()
    states = viterbi.encode_tiles(tiles, bits, Codebook.MCG)
    if tiles.is_cuda:
        torch.cuda.synchronize()
    return states, time.perf_counter() - start


def _error(states: Tensor, weights: Tensor) -> float:
    return float((codebook_table(Codebook.MCG)[states].float() - weights).square().mean())


if __name__ == "__main__":
    typer.run(main)
