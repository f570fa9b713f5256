"""sigmoid and silu from exp and division: values, limits, and equal bits wherever an element stands."""

import pytest
import torch

from support.row_invariance import WIDTHS, check_row_invariance
from twinspark_kernels.sigmoid import sigmoid, silu


def test_values_agree_with_float64_over_the_whole_range() -> None:
    x = torch.linspace(-80, 80, 4001)
    wide = torch.sigmoid(x.double())
    torch.testing.assert_close(sigmoid(x).double(), wide, rtol=1e-6, atol=1e-38)  # fp32 exp and division
    torch.testing.assert_close(silu(x).double(), x.double() * wide, rtol=1e-6, atol=1e-36)


def test_far_values_reach_the_limits_without_nan() -> None:
    x = torch.tensor([-1e30, -200.0, 200.0, 1e30])
    assert sigmoid(x).tolist() == [0.0, 0.0, 1.0, 1.0]
    assert silu(x).tolist() == [0.0, 0.0, 200.0, x[3].item()]


@pytest.mark.parametrize("width", [1, 7, *WIDTHS])
def test_an_element_keeps_its_bits_in_every_batch(width: int) -> None:
    check_row_invariance(lambda x: (sigmoid(x), silu(x)), lambda n: (torch.randn(n, width) * 4,))
