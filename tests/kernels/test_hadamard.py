"""hadamard and the EXL3 rotations: agreement with the matrix, exact order of additions, equal bits, refused inputs."""

import math

import pytest
import torch

from support.row_invariance import check_row_invariance, same_bits
from twinspark_kernels.hadamard import BLOCK, SCALE, hadamard, rotate_in, rotate_out


def _matrix() -> torch.Tensor:
    """H[i][j] = (-1)^popcount(i & j) / sqrt(128) in float64."""
    signs = [[(-1) ** (i & j).bit_count() for j in range(BLOCK)] for i in range(BLOCK)]
    return torch.tensor(signs, dtype=torch.float64) * (1 / math.sqrt(BLOCK))


def test_every_block_is_multiplied_by_the_sylvester_matrix() -> None:
    x = torch.randn(5, 3, 384)
    expected = (x.double().view(5, 3, 3, BLOCK) @ _matrix()).view(5, 3, 384)
    torch.testing.assert_close(hadamard(x), expected.float(), rtol=1e-5, atol=1e-6)  # seven fp32 additions


def test_additions_follow_strides_1_2_4_to_64() -> None:
    """Another order rounds elsewhere; the fp16 operand of an EXL3 product would then differ in some bits."""
    x = torch.randn(64, BLOCK) * torch.logspace(-4, 4, BLOCK)
    rows = [[float(value) for value in row] for row in x]
    stride = 1
    while stride < BLOCK:
        for row in rows:
            for i in range(BLOCK):
                if not i & stride:
                    low, high = row[i], row[i + stride]
                    row[i], row[i + stride] = _fp32(low + high), _fp32(low - high)
        stride *= 2
    assert same_bits(hadamard(x), torch.tensor(rows) * SCALE)


def _fp32(value: float) -> float:
    """An fp32 sum: the float64 sum of two fp32 values, rounded (double rounding is harmless at these widths)."""
    return torch.tensor(value, dtype=torch.float64).float().item()


def test_rotations_round_the_input_to_fp16_and_keep_the_output_in_fp32() -> None:
    x, suh, svh = torch.randn(6, 256), torch.randn(256).half(), torch.randn(256).half()
    rotated = rotate_in(x, suh)
    assert rotated.dtype == torch.float16
    assert same_bits(rotated, hadamard((x.half() * suh).float()).half())
    assert same_bits(rotate_out(x, svh), hadamard(x) * svh.float())


def test_scales_may_differ_by_row() -> None:
    x, suh = torch.randn(4, 128), torch.randn(4, 128).half()
    whole = rotate_in(x, suh)
    for row in range(4):
        assert same_bits(whole[row], rotate_in(x[row], suh[row]))


@pytest.mark.parametrize("width", [128, 384])
def test_rotations_give_a_row_the_same_bits_in_every_batch(width: int) -> None:
    scale = torch.randn(width).half()
    check_row_invariance(
        lambda x: (rotate_in(x, scale), rotate_out(x, scale)),
        lambda n: (torch.randn(n, width),),
        row_counts=(2, 17, 37),
    )


def test_refused_inputs_name_the_argument() -> None:
    with pytest.raises(ValueError, match=r"^x: .*multiple of 128.*\(2, 100\)"):
        hadamard(torch.zeros(2, 100))
    with pytest.raises(TypeError, match=r"^suh: must be float16"):
        rotate_in(torch.zeros(2, 128), torch.zeros(128))
    with pytest.raises(ValueError, match=r"^svh: .*128 entries"):
        rotate_out(torch.zeros(2, 128), torch.zeros(256).half())
    with pytest.raises(ValueError, match=r"^y: "):
        rotate_out(torch.zeros(2, 127), torch.zeros(127).half())
