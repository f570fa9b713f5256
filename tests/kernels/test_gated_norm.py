"""gated_norm: agreement with float64 and Transformers, equal bits in every batch, refused inputs."""

import pytest
import torch
from transformers.models.glm5_next.modeling_glm5_next import Glm5NextTextRMSNormGated

from support.row_invariance import WIDTHS, check_row_invariance
from twinspark_kernels.gated_norm import gated_norm

EPS = 1e-5


def test_gated_norm_is_the_float64_formula() -> None:
    o, gate, weight = torch.randn(7, 3, 100), torch.randn(7, 3, 100), torch.randn(100)
    o[2] *= 1e-3  # eps matters here
    wide = o.double()
    expected = (
        weight.double() * wide / (wide.square().mean(-1, keepdim=True) + EPS).sqrt() * torch.sigmoid(gate.double())
    )
    torch.testing.assert_close(gated_norm(o, gate, weight, EPS), expected.float(), rtol=3e-6, atol=1e-6)  # fp32 steps


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 3e-6), (torch.bfloat16, 2**-8)])
def test_gated_norm_agrees_with_transformers(dtype: torch.dtype, tolerance: float) -> None:
    """Within fp32 rounding of the sigmoid; in bf16 that may flip one last bit."""
    o, gate, norm = torch.randn(9, 2, 64).to(dtype), torch.randn(9, 2, 64).to(dtype), Glm5NextTextRMSNormGated(64, EPS)
    norm.weight.data.normal_()
    expected = norm(o, gate).detach()
    torch.testing.assert_close(gated_norm(o, gate, norm.weight.data, EPS), expected, rtol=tolerance, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("width", WIDTHS)
def test_gated_norm_gives_a_row_the_same_bits_in_every_batch(width: int, dtype: torch.dtype) -> None:
    weight = torch.randn(width)
    check_row_invariance(
        lambda o, gate: gated_norm(o, gate, weight, EPS),
        lambda n: (torch.randn(n, 3, width).to(dtype), torch.randn(n, 3, width).to(dtype)),
    )


def test_refused_shapes_name_the_argument() -> None:
    o = torch.zeros(2, 3, 4)
    with pytest.raises(ValueError, match=r"^o: "):
        gated_norm(o[0], o[0], torch.zeros(4), EPS)
    with pytest.raises(ValueError, match=r"^gate: "):
        gated_norm(o, o[:1], torch.zeros(4), EPS)
    with pytest.raises(ValueError, match=r"^weight: must be \[4\]"):
        gated_norm(o, o, torch.zeros(3, 4), EPS)
