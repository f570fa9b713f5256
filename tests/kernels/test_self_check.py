"""The start-up check passes for the shapes of a model here, and names an op that is not row invariant."""

import pytest
import torch
import torch.nn.functional as F

from support.row_invariance import threads
from twinspark_kernels import self_check
from twinspark_kernels.row_class import RowClass
from twinspark_kernels.self_check import OpShapes, RowInvarianceError, check_row_invariance, check_rows

SHAPES = OpShapes(
    linear=frozenset({(24, 1024), (656, 256), (2, 256), (1024, 256), (256, 128)}),
    head_linear=frozenset({(2, 64, 128), (2, 128, 64)}),
    widths=frozenset({256, 128, 100}),
)


@pytest.mark.parametrize("count", [1, 2])
def test_the_reference_ops_pass_on_this_machine(count: int) -> None:
    with threads(count):
        check_row_invariance(SHAPES)


def test_a_plain_product_is_found_and_named() -> None:
    weight = torch.randn(256, 256)
    with pytest.raises(RowInvarianceError, match=r"^plain: row \d+ of 37 .* threads"):
        check_rows("plain", lambda x: F.linear(x, weight), torch.randn(37, 256))


def test_a_linear_that_follows_the_row_count_is_named_with_its_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    def plain(x: torch.Tensor, weight: torch.Tensor, *, row_class: RowClass) -> torch.Tensor:
        assert row_class
        return F.linear(x, weight)

    monkeypatch.setattr(self_check, "linear", plain)
    with pytest.raises(RowInvarianceError, match=r"^linear 256 x 256, PROMPT: "):
        check_row_invariance(OpShapes(linear=frozenset({(256, 256)})))
