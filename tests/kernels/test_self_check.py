"""The start-up check passes for the shapes of a model here, and names an op that is not row invariant."""

import pytest
import torch

from support.row_invariance import product_by_row_count, threads
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


def test_a_product_that_follows_the_row_count_is_named() -> None:
    weight = torch.randn(256, 256)
    with pytest.raises(RowInvarianceError, match=r"^product: row \d+ of 37 .* threads"):
        check_rows("product", lambda x: product_by_row_count(x, weight), torch.randn(37, 256))


def test_a_product_that_follows_the_number_of_threads_is_named() -> None:
    weight = torch.randn(256, 256)

    def by_threads(x: torch.Tensor) -> torch.Tensor:
        # As many rows for every count of rows, so that only the threads differ.
        return torch.cat([product_by_row_count(row[None].expand(torch.get_num_threads(), -1), weight)[:1] for row in x])

    with threads(1):
        check_rows("product", by_threads, torch.randn(37, 256))
    with threads(2), pytest.raises(RowInvarianceError, match=r"^product: one thread gives other bits than 2"):
        check_rows("product", by_threads, torch.randn(37, 256))


def test_a_linear_that_follows_the_row_count_is_named_with_its_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    def plain(x: torch.Tensor, weight: torch.Tensor, *, row_class: RowClass) -> torch.Tensor:
        assert row_class
        return product_by_row_count(x, weight)

    monkeypatch.setattr(self_check, "linear", plain)
    with pytest.raises(RowInvarianceError, match=r"^linear 256 x 256, PROMPT: "):
        check_row_invariance(OpShapes(linear=frozenset({(256, 256)})))
