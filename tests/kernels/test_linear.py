"""linear and head_linear: agreement with float64, equal bits in every batch, refused inputs."""

import pytest
import torch

from support.row_invariance import THREAD_COUNTS, WIDTHS, check_row_invariance, same_bits, threads
from twinspark_kernels.linear import head_linear, linear
from twinspark_kernels.row_class import RowClass

OUTPUTS = (1, 9, 100)
ODD_WIDTHS = (5, 130, 257)  # rows of these start on every alignment

both_classes = pytest.mark.parametrize("row_class", list(RowClass), ids=lambda row_class: row_class.name)


@both_classes
@pytest.mark.parametrize("rows", [0, 1, 8, 37, 64, 130])
def test_linear_is_the_float64_product(row_class: RowClass, rows: int) -> None:
    x, weight = torch.randn(rows, 100), torch.randn(24, 100)
    got = linear(x, weight, row_class=row_class)
    # fp32 sums of 100 products of size 1
    torch.testing.assert_close(got, (x.double() @ weight.double().T).float(), rtol=1e-5, atol=2e-5)


@both_classes
def test_head_linear_multiplies_each_head_by_its_own_matrix(row_class: RowClass) -> None:
    x, weight = torch.randn(70, 3, 20), torch.randn(3, 20, 12)
    expected = torch.stack([x[:, head].double() @ weight[head].double() for head in range(3)], 1).float()
    assert head_linear(x[:0], weight, row_class=row_class).shape == (0, 3, 12)
    torch.testing.assert_close(head_linear(x, weight, row_class=row_class), expected, rtol=1e-5, atol=1e-5)


def test_bfloat16_operands_are_summed_in_fp32_and_rounded_once() -> None:
    x, weight = torch.randn(5, 256).bfloat16(), torch.randn(24, 256).bfloat16()
    exact = linear(x.float(), weight.float(), row_class=RowClass.DECODE)
    assert same_bits(linear(x, weight, row_class=RowClass.DECODE), exact.bfloat16())
    assert same_bits(linear(x, weight, row_class=RowClass.DECODE, out_dtype=torch.float32), exact)
    heads = weight.view(2, 12, 256).mT
    x_heads = x.view(5, 1, 256).expand(5, 2, 256)
    assert head_linear(x_heads, heads, row_class=RowClass.DECODE).dtype == torch.bfloat16
    assert head_linear(x_heads, heads, row_class=RowClass.DECODE, out_dtype=torch.float32).dtype == torch.float32


@both_classes
@pytest.mark.parametrize("width", [*WIDTHS, *ODD_WIDTHS])
def test_linear_gives_a_row_the_same_bits_in_every_batch(row_class: RowClass, width: int) -> None:
    for outputs in OUTPUTS:
        weight = torch.randn(outputs, width)
        check_row_invariance(lambda x, w=weight: linear(x, w, row_class=row_class), lambda n: (torch.randn(n, width),))


@both_classes
@pytest.mark.parametrize("width", [4, 100, 128, 257])
def test_a_transposed_weight_gives_a_row_the_same_bits_in_every_batch(row_class: RowClass, width: int) -> None:
    for outputs in (1, 9, 128):
        weight = torch.randn(width, outputs).t()
        check_row_invariance(lambda x, w=weight: linear(x, w, row_class=row_class), lambda n: (torch.randn(n, width),))


@both_classes
@pytest.mark.parametrize("width", [4, 24, 100, 257, 1000])
def test_head_linear_gives_a_row_the_same_bits_in_every_batch(row_class: RowClass, width: int) -> None:
    for outputs in (9, 64):
        weight = torch.randn(3, width, outputs)
        transposed = torch.randn(3, outputs, width).mT
        for matrix in (weight, transposed):
            check_row_invariance(
                lambda x, w=matrix: head_linear(x, w, row_class=row_class), lambda n: (torch.randn(n, 3, width),)
            )


@both_classes
@pytest.mark.parametrize("outputs", [2, 24])
def test_rows_of_several_tiles_have_the_same_bits_as_alone(row_class: RowClass, outputs: int) -> None:
    weight = torch.randn(outputs, 144)
    check_row_invariance(
        lambda x: linear(x, weight, row_class=row_class), lambda n: (torch.randn(n, 144),), row_counts=(64, 65, 200)
    )


@both_classes
@pytest.mark.parametrize("outputs", [2, 24])
def test_a_view_that_starts_off_alignment_gives_the_same_bits(row_class: RowClass, outputs: int) -> None:
    weight, x = torch.randn(outputs, 144), torch.randn(200, 150)
    whole = linear(x[:, 3:147], weight, row_class=row_class)
    flat = torch.randn(1 + 200 * 144)[1:].view(200, 144).copy_(x[:, 3:147])
    for count in THREAD_COUNTS:
        with threads(count):
            for start in (0, 1, 3, 64):
                rows = slice(start, start + 64)
                assert same_bits(linear(x[rows, 3:147], weight, row_class=row_class), whole[rows])
                assert same_bits(linear(flat[rows], weight, row_class=row_class), whole[rows])


def test_refused_shapes_name_the_argument() -> None:
    with pytest.raises(ValueError, match=r"^x: .*\(3,\)"):
        linear(torch.zeros(3), torch.zeros(2, 3), row_class=RowClass.DECODE)
    with pytest.raises(ValueError, match=r"^weight: .*\(2, 4\)"):
        linear(torch.zeros(1, 3), torch.zeros(2, 4), row_class=RowClass.DECODE)
    with pytest.raises(ValueError, match=r"^x: "):
        head_linear(torch.zeros(1, 3), torch.zeros(2, 3, 4), row_class=RowClass.DECODE)
    with pytest.raises(ValueError, match=r"^weight: must be \[2, 3, out\]"):
        head_linear(torch.zeros(1, 2, 3), torch.zeros(2, 4, 3), row_class=RowClass.DECODE)
