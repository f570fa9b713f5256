"""Rows of an image stand in place of its tokens' embeddings, in any chunk, and nowhere else."""

from collections.abc import Sequence

import torch
from torch import Tensor

from support.forward_case import ForwardCase, forward_case
from support.hf_models import HfShape
from twinspark_engine.model.model import Model
from twinspark_engine.model.rows import Rows
from twinspark_engine.model.state import ModelState
from twinspark_engine.ranks.transport import LocalTransport
from twinspark_kernels.embedding import ImageRows
from twinspark_kernels.row_class import RowClass

SHAPE = HfShape("kDK", seed=6)
LENGTH, IMAGE = 100, 7
PLACES = torch.tensor([3, 4, 5, 70, 71])


def hidden(case: ForwardCase, ids: Tensor, chunks: Sequence[tuple[int, int, ImageRows | None]]) -> Tensor:
    """Rows after the final norm of the chunks [start, end) of one prompt."""
    model = Model(case.config, case.weights(0, 1), LocalTransport())
    state = ModelState.allocate(case.config, 1, 1, 128, torch.float32)
    state.reset_slot(0)
    found = []
    with torch.inference_mode():
        for start, end, images in chunks:
            rows = Rows.segment(RowClass.PROMPT, ids[start:end], 0, start)
            found.append(model.forward(Rows(rows.row_class, rows.ids, rows.slots, rows.positions, images), state))
    return torch.cat(found)


def test_rows_that_are_other_tokens_embeddings_read_as_these_tokens() -> None:
    case = forward_case(SHAPE)
    meant = torch.tensor(case.prompt(LENGTH))
    written = meant.clone()
    written[PLACES] = IMAGE
    values = case.weights(0, 1).embed[meant[PLACES]]
    expected = hidden(case, meant, [(0, LENGTH, None)])
    assert torch.equal(hidden(case, written, [(0, LENGTH, ImageRows(PLACES, values))]), expected)
    halves = [(0, 64, ImageRows(PLACES[:3], values[:3])), (64, LENGTH, ImageRows(PLACES[3:] - 64, values[3:]))]
    assert torch.equal(hidden(case, written, halves), expected)
    without = hidden(case, written, [(0, LENGTH, None)])
    assert torch.equal(without[:3], expected[:3]) and not torch.equal(without[3:], expected[3:])
