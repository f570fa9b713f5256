"""Paged rows: blocks of a fixed number of rows in one buffer, and a table that says where the blocks of a slot lie.

What a block holds and who owns it is the caller's: an op reads and writes through the table alone, so no bit depends
on which blocks a slot has. Two blocks belong to nobody. The null block stands in every table entry that is not mapped
and stays zero: a stray read finds zeros, a stray write is found by looking at it. The trash block takes the rows of
slot -1 (padding), which read the table's last row.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

BLOCK_TOKENS = 256
NULL_BLOCK = 0
TRASH_BLOCK = 1
FIRST_BLOCK = 2
"""The first block that a slot may have."""


@dataclass(frozen=True, slots=True)
class PagedRows:
    """Rows of every slot, addressed by their index in the slot (a position, or a pool). S = slots + 1."""

    values: Tensor  # [B, R, W], contiguous; R a power of two
    table: Tensor  # int32 [S, M]: the block of rows i * R to i * R + R - 1 of each slot
    scales: Tensor | None = None  # fp32 [B, R]: what e4m3 values are multiplied by; None: the values are plain

    @property
    def block_rows(self) -> int:
        """Rows of one block, R."""
        return self.values.shape[1]

    @property
    def width(self) -> int:
        """Values of one row, W."""
        return self.values.shape[2]

    @property
    def block_bytes(self) -> int:
        """Bytes of one block, scales included."""
        return sum(tensor[NULL_BLOCK].nbytes for tensor in self.tensors())

    def tensors(self) -> tuple[Tensor, ...]:
        """What one family of rows keeps; the table is shared by all."""
        return (self.values,) if self.scales is None else (self.values, self.scales)

    def places(self, slots: Tensor, rows: Tensor) -> Tensor:
        """int64: index of each row among all rows of the buffer. `slots` and `rows` int64, of shapes that broadcast."""
        block_rows = self.block_rows
        shift = block_rows.bit_length() - 1
        return self.table[slots, rows >> shift].long().mul_(block_rows).add_(rows & block_rows - 1)

    def read(self, places: Tensor) -> Tensor:
        """[N, W] rows at these places [N]: plain values in their dtype, scaled ones in fp32."""
        rows = self.values.view(-1, self.width).index_select(0, places)
        if self.scales is None:
            return rows
        return rows.float() * self.scales.view(-1).index_select(0, places)[:, None]

    def read_chunk(self, slot: int, first: int, count: int) -> Tensor:
        """[count, W] rows `first` on of one slot, as `read` gives them, in a tensor of its own.

        `first` and `count` are multiples of R. Rows behind the table's end are zeros: the result has always the same
        shape, whatever the table's width.
        """
        block_rows = self.block_rows
        blocks = self.table[slot, first // block_rows : (first + count) // block_rows]
        rows = self.values.index_select(0, blocks)
        if self.scales is not None:
            rows = rows.float() * self.scales.index_select(0, blocks)[..., None]
        rows = rows.view(-1, self.width)
        return rows if len(rows) == count else torch.nn.functional.pad(rows, (0, 0, 0, count - len(rows)))

    def write(self, slots: Tensor, rows: Tensor, values: Tensor) -> None:
        """Copy plain values [N, W] into these rows of these slots; where two go to one place, either stays."""
        block_rows = self.block_rows
        blocks = self.table[slots, rows >> block_rows.bit_length() - 1]
        self.values.index_put_((blocks, rows & block_rows - 1), values)


def build_table(num_slots: int, num_columns: int) -> Tensor:
    """int32 [num_slots + 1, num_columns]: nothing is mapped, and padding rows go to the trash block."""
    table = torch.full((num_slots + 1, num_columns), NULL_BLOCK, dtype=torch.int32)
    table[-1] = TRASH_BLOCK
    return table


def map_blocks(table: Tensor, slot: int, blocks: Sequence[int]) -> None:
    """Give a slot these blocks, in order of position; the rest of its entries become the null block."""
    table[slot, : len(blocks)] = torch.tensor(blocks, dtype=torch.int32)
    table[slot, len(blocks) :] = NULL_BLOCK


def check_paged(name: str, rows: PagedRows, width: int | None, chunk: int) -> None:
    """Raise unless these are contiguous blocks [B, R, width] with their table, R a power of two that divides chunk."""
    values, table, scales = rows.values, rows.table, rows.scales
    if values.dim() != 3 or width not in (None, values.shape[2]) or not values.is_contiguous():
        raise ValueError(f"{name}: must be contiguous blocks of shape (any, any, {width}), got {tuple(values.shape)}")
    block_rows = values.shape[1]
    if block_rows.bit_count() != 1 or chunk % block_rows:
        raise ValueError(f"{name}: a block's rows must be a power of two that divides {chunk}, got {block_rows}")
    if table.dtype != torch.int32:
        raise TypeError(f"{name}: the table must be int32, got {table.dtype}")
    if table.dim() != 2:
        raise ValueError(f"{name}: the table must have shape (any, any), got {tuple(table.shape)}")
    if (values.dtype == torch.float8_e4m3fn) != (scales is not None):
        raise TypeError(f"{name}: scales belong to float8_e4m3fn values and to no others, got {values.dtype}")
    if scales is not None and (scales.dtype != torch.float32 or scales.shape != values.shape[:2]):
        raise ValueError(f"{name}: scales must be fp32 {tuple(values.shape[:2])}, got {tuple(scales.shape)}")
