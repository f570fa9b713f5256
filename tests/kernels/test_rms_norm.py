"""rms_norm: agreement with float64 and Transformers, rounding points, equal bits in every batch, refused inputs."""

import pytest
import torch
from transformers.models.glm5_next.modeling_glm5_next import Glm5NextTextRMSNorm

from support.row_invariance import WIDTHS, check_row_invariance, same_bits
from twinspark_kernels.rms_norm import rms_norm

EPS = 1e-5


def test_rms_norm_is_the_float64_formula() -> None:
    x, weight = torch.randn(7, 100), torch.randn(100)
    x[3] *= 1e-3  # eps matters here
    wide = x.double()
    expected = weight.double() * wide / (wide.square().mean(-1, keepdim=True) + EPS).sqrt()
    torch.testing.assert_close(rms_norm(x, weight, EPS), expected.float(), rtol=2e-6, atol=1e-6)  # a few fp32 roundings


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rms_norm_rounds_where_transformers_does(dtype: torch.dtype) -> None:
    x, norm = torch.randn(9, 256).to(dtype), Glm5NextTextRMSNorm(256, EPS).to(dtype)
    norm.weight.data.copy_(torch.randn(256))
    assert same_bits(rms_norm(x, norm.weight.data, EPS), norm(x).detach())


def test_rms_norm_works_on_the_last_axis_of_heads() -> None:
    x, weight = torch.randn(5, 3, 24), torch.randn(24)
    flat = rms_norm(x.view(15, 24), weight, EPS)
    assert same_bits(rms_norm(x, weight, EPS).view(15, 24), flat)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("width", WIDTHS)
def test_rms_norm_gives_a_row_the_same_bits_in_every_batch(width: int, dtype: torch.dtype) -> None:
    weight = torch.randn(width).to(dtype)
    check_row_invariance(lambda x: rms_norm(x, weight, EPS), lambda n: (torch.randn(n, width).to(dtype),))
    # a strided view, as a slice of a fused projection
    check_row_invariance(
        lambda x: rms_norm(x[:, 1 : 1 + width], weight, EPS), lambda n: (torch.randn(n, width + 3).to(dtype),)
    )


def test_refused_shapes_name_the_argument() -> None:
    with pytest.raises(ValueError, match=r"^x: "):
        rms_norm(torch.zeros(4), torch.zeros(4), EPS)
    with pytest.raises(ValueError, match=r"^weight: must be \[4\]"):
        rms_norm(torch.zeros(2, 4), torch.zeros(5), EPS)
