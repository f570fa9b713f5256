"""layer_norm: agreement with float64 and torch, equal bits in every batch, refused inputs."""

import pytest
import torch

from support.row_invariance import WIDTHS, check_row_invariance
from twinspark_kernels.layer_norm import layer_norm

EPS = 1e-6


def test_layer_norm_is_the_float64_formula() -> None:
    x, weight, bias = torch.randn(7, 100) + 5, torch.randn(100), torch.randn(100)
    x[2] = x[2] * 1e-3  # eps matters here
    wide = x.double()
    centred = wide - wide.mean(-1, keepdim=True)
    expected = weight.double() * centred / (centred.square().mean(-1, keepdim=True) + EPS).sqrt() + bias.double()
    # the mean of values around 5 costs a few fp32 roundings
    torch.testing.assert_close(layer_norm(x, weight, bias, EPS), expected.float(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 2**-7)])
def test_layer_norm_agrees_with_torch(dtype: torch.dtype, tolerance: float) -> None:
    """fp32: other order of sums; bf16: one flipped last bit."""
    x, weight, bias = (torch.randn(*shape).to(dtype) for shape in ((9, 128), (128,), (128,)))
    expected = torch.nn.functional.layer_norm(x, (128,), weight, bias, EPS)
    torch.testing.assert_close(layer_norm(x, weight, bias, EPS), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("width", WIDTHS)
def test_layer_norm_gives_a_row_the_same_bits_in_every_batch(width: int, dtype: torch.dtype) -> None:
    weight, bias = torch.randn(width), torch.randn(width)
    check_row_invariance(lambda x: layer_norm(x, weight, bias, EPS), lambda n: (torch.randn(n, width).to(dtype),))


def test_refused_shapes_name_the_argument() -> None:
    x = torch.zeros(2, 4)
    with pytest.raises(ValueError, match=r"^x: "):
        layer_norm(x[0], torch.zeros(4), torch.zeros(4), EPS)
    with pytest.raises(ValueError, match=r"^weight: must be \[4\]"):
        layer_norm(x, torch.zeros(5), torch.zeros(4), EPS)
    with pytest.raises(ValueError, match=r"^bias: must be \[4\]"):
        layer_norm(x, torch.zeros(4), torch.zeros(5), EPS)
