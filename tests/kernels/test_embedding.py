"""embed: table rows, image rows, equal bits in every batch, refused inputs."""

import pytest
import torch

from support.row_invariance import WIDTHS, check_row_invariance, same_bits
from twinspark_kernels.embedding import ImageRows, embed


def test_a_row_is_the_table_row_of_its_id() -> None:
    table = torch.randn(30, 24).bfloat16()
    ids = torch.tensor([29, 0, 0, 7])
    assert same_bits(embed(ids, table, None), torch.stack([table[i] for i in (29, 0, 0, 7)]))


def test_image_rows_replace_whole_rows_and_leave_the_table() -> None:
    table = torch.randn(30, 24)
    before, values = table.clone(), torch.randn(2, 24).bfloat16()
    got = embed(torch.arange(5), table, ImageRows(torch.tensor([3, 1]), values))
    assert torch.equal(got[[3, 1]], values.float())
    assert torch.equal(got[[0, 2, 4]], before[[0, 2, 4]])
    assert torch.equal(table, before)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
def test_embed_gives_a_row_the_same_bits_in_every_batch(width: int, dtype: torch.dtype) -> None:
    table = torch.randn(30, width).to(dtype)
    check_row_invariance(lambda ids: embed(ids, table, None), lambda n: (torch.randint(0, 30, (n,)),))


def test_refused_inputs_name_the_argument() -> None:
    table = torch.zeros(4, 8)
    with pytest.raises(ValueError, match=r"^ids: must be int64"):
        embed(torch.zeros(2), table, None)
    with pytest.raises(ValueError, match=r"^table: "):
        embed(torch.zeros(2, dtype=torch.int64), table[0], None)
    with pytest.raises(ValueError, match=r"^image_rows: values must be \[1, 8\]"):
        embed(torch.zeros(2, dtype=torch.int64), table, ImageRows(torch.tensor([0]), torch.zeros(1, 7)))
    with pytest.raises(IndexError):
        embed(torch.tensor([4]), table, None)
