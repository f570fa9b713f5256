"""The start-up check of stateful ops passes here, and names an op whose bits follow the batch."""

from typing import Any

import pytest
import torch
from torch import Tensor

from support.row_invariance import product_by_row_count, threads
from twinspark_kernels import stateful_self_check
from twinspark_kernels.kda import KdaInputs, KdaParams, kda_recurrent
from twinspark_kernels.latent_attention import latent_attention
from twinspark_kernels.paged import PagedRows
from twinspark_kernels.self_check import RowInvarianceError
from twinspark_kernels.stateful_self_check import check_stateful_ops


@pytest.mark.parametrize("count", [1, 2])
def test_kda_and_attention_pass_on_this_machine(count: int) -> None:
    with threads(count):
        check_stateful_ops([(2, 64, 64), (3, 24, 100), (1, 4, 4)], [128, 100, 4])


def test_an_op_that_follows_the_number_of_slots_is_named_with_its_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    def counting(inputs: KdaInputs, params: KdaParams, state: Tensor, slots: Tensor, positions: Tensor) -> Tensor:
        return kda_recurrent(inputs, params, state, slots, positions) + len(state) * torch.finfo(torch.float32).eps

    monkeypatch.setattr(stateful_self_check, "kda_recurrent", counting)
    with pytest.raises(RowInvarianceError, match=r"^counting 2 x 24 x 24: row 0 of 7"):
        check_stateful_ops([(2, 24, 24)], [])


def test_attention_whose_bits_follow_the_blocks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_table(q: Tensor, latents: PagedRows, **options: Any) -> Tensor:
        return latent_attention(q, latents, **options) + int(latents.table[0, 0]) * torch.finfo(torch.float32).eps

    monkeypatch.setattr(stateful_self_check, "latent_attention", by_table)
    with pytest.raises(RowInvarianceError, match=r"^latent_attention 100, torch.float32: bits follow the blocks"):
        check_stateful_ops([], [100])


def test_attention_tiles_as_high_as_the_rows_are_many_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def plain(x: Tensor, keys: Tensor) -> Tensor:
        latent = keys[0, :, : x.shape[1]]
        return product_by_row_count(torch.softmax(x @ latent.T / len(latent), -1), latent.T)

    monkeypatch.setattr(stateful_self_check, "_attend_chunk", plain)
    with pytest.raises(RowInvarianceError, match=r"^latent_attention 100: row"):
        check_stateful_ops([], [100])
