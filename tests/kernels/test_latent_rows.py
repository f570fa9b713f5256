"""Latent rows: plain rows are copied; FP8 rows have the smallest power of two that keeps them inside e4m3."""

import math

import pytest
import torch
from torch import Tensor

from support.paged import paged, quantized, unpaged
from support.row_invariance import check_row_invariance, same_bits
from twinspark_kernels.latent_rows import E4M3_MAX, quantize_rows, write_latents
from twinspark_kernels.paged import PagedRows

WIDTHS = (4, 24, 100, 1000, 64)


def smallest_power(amax: float) -> float:
    """The definition, by trying: the smallest power of two with amax / s <= 448; 1 for 0."""
    if amax == 0:
        return 1.0
    return min(2.0**e for e in range(-149, 128) if amax / 2.0**e <= E4M3_MAX)


def nearest_e4m3(x: float) -> float:
    """By the format: 3 bits behind the leading one, exponents from -6 on, ties to even."""
    if x == 0:
        return x
    step = 2.0 ** (max(math.frexp(abs(x))[1] - 1, -6) - 3)
    return math.copysign(round(abs(x) / step) * step, x)  # Python rounds ties to even


AMAX = [0.0, 1.0, 448.0, 449.0, 447.99997, 448.00003, 0.875, 0.8750001, 3.4e38, 2.0**-126, 1e-44, 2.0**-149, 7e-3]


@pytest.mark.parametrize("amax", AMAX)
def test_scale_is_the_smallest_power_of_two_that_fits(amax: float) -> None:
    rows = torch.zeros(1, 5)
    rows[0, 3] = -amax
    values, scales = quantize_rows(rows)
    assert scales.dtype == torch.float32
    assert scales.item() == smallest_power(float(rows[0, 3].abs()))
    assert values.dtype == torch.float8_e4m3fn
    assert values.float().abs().max() <= E4M3_MAX


def test_values_are_the_nearest_e4m3_and_reading_back_is_exact_in_bf16() -> None:
    rows = torch.randn(50, 40) * torch.logspace(-30, 30, 50)[:, None]
    values, scales = quantize_rows(rows)
    for row in range(50):
        expected = [nearest_e4m3(x / float(scales[row])) for x in rows[row].tolist()]
        assert values[row].float().tolist() == expected
    read = values.float() * scales[:, None]
    assert same_bits(read.bfloat16().float(), read)
    assert ((read - rows).abs().amax(1) <= rows.abs().amax(1) / 16).all()


def test_a_row_that_is_not_finite_harms_no_other() -> None:
    rows = torch.randn(4, 8)
    clean, clean_scales = quantize_rows(rows)
    rows[1, 2], rows[2, 5] = torch.nan, torch.inf
    values, scales = quantize_rows(rows)
    assert scales[[1, 2]].isnan().all()
    assert (values.float() * scales[:, None])[[1, 2]].isnan().all()
    assert same_bits(values[[0, 3]].float(), clean[[0, 3]].float())
    assert same_bits(scales[[0, 3]], clean_scales[[0, 3]])


@pytest.mark.parametrize("width", WIDTHS)
def test_a_row_keeps_its_values_and_scale_in_any_batch(width: int) -> None:
    def quantize(rows: Tensor) -> tuple[Tensor, Tensor]:
        values, scales = quantize_rows(rows)
        return values.float(), scales

    check_row_invariance(quantize, lambda rows: (torch.randn(rows, width) * 100,))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
@pytest.mark.parametrize("is_fp8", [False, True], ids=["plain", "fp8"])
def test_rows_are_read_back_from_their_positions(dtype: torch.dtype, is_fp8: bool) -> None:
    rows = torch.randn(30, 8).to(dtype)
    blocks: PagedRows = paged(torch.zeros(3, 100, 8, dtype=dtype), 16)
    blocks = quantized(blocks) if is_fp8 else blocks
    slots, positions = torch.tensor([1] * 20 + [0] * 10), torch.cat((torch.arange(10, 30), torch.arange(70, 80)))
    write_latents(rows, blocks, slots, positions)
    found = unpaged(blocks)
    values, scales = quantize_rows(rows)
    expected = values.float() * scales[:, None] if is_fp8 else rows
    assert same_bits(found[1, 10:30], expected[:20])
    assert same_bits(found[0, 70:80], expected[20:])
    assert not found[1, :10].any()
    assert not found[2, :100].any()


def test_no_rows_change_nothing() -> None:
    blocks = paged(torch.zeros(1, 16, 8), 16)
    before = blocks.values.clone()
    nothing = torch.zeros(0, dtype=torch.int64)
    write_latents(torch.zeros(0, 8), blocks, nothing, nothing)
    assert same_bits(blocks.values, before)


def test_wrong_shapes_and_dtypes_are_refused_by_name() -> None:
    blocks = paged(torch.zeros(1, 16, 8), 16)
    slots = positions = torch.zeros(2, dtype=torch.int64)
    with pytest.raises(ValueError, match=r"^rows"):
        write_latents(torch.zeros(8), blocks, slots, positions)
    with pytest.raises(ValueError, match=r"^latents"):
        write_latents(torch.zeros(2, 9), blocks, slots, positions)
    with pytest.raises(TypeError, match=r"^rows: must have the dtype of plain latents"):
        write_latents(torch.zeros(2, 8).bfloat16(), blocks, slots, positions)
    with pytest.raises(ValueError, match=r"^slots"):
        write_latents(torch.zeros(3, 8), blocks, slots, positions)
    with pytest.raises(TypeError, match=r"^rows: must be a float dtype"):
        quantize_rows(torch.zeros(2, 8, dtype=torch.int64))
