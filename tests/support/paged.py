"""Rows of slots in blocks that lie in random order, among blocks full of NaN that belong to nobody."""

import torch
from torch import Tensor

from twinspark_kernels.latent_rows import quantize_rows
from twinspark_kernels.paged import FIRST_BLOCK, NULL_BLOCK, PagedRows, build_table

NUM_FOREIGN = 3


def paged(rows: Tensor, block_rows: int = 64, seed: int = 0) -> PagedRows:
    """Blocks that hold rows [S, C, W] of S slots; behind row C lies NaN.

    The null block is zero, foreign blocks are NaN. `seed` decides which blocks each slot has.
    """
    num_slots, length, width = rows.shape
    columns = -(-length // block_rows)
    behind = columns * block_rows - length
    values = torch.full((FIRST_BLOCK + num_slots * columns + NUM_FOREIGN, block_rows, width), torch.nan).to(rows.dtype)
    values[NULL_BLOCK] = 0
    blocks = FIRST_BLOCK + torch.randperm(len(values) - FIRST_BLOCK, generator=torch.Generator().manual_seed(seed))
    owned = blocks[: num_slots * columns].view(num_slots, columns)
    filled = torch.cat((rows, torch.full((num_slots, behind, width), torch.nan).to(rows.dtype)), 1)
    values[owned.flatten()] = filled.view(-1, block_rows, width)
    table = build_table(num_slots, columns)
    table[:num_slots] = owned.int()
    return PagedRows(values, table)


def unpaged(rows: PagedRows) -> Tensor:
    """[S, C, W]: what the blocks of every slot hold, and last what the trash block holds, again and again."""
    num_rows, columns = rows.table.shape
    chunks = [rows.read_chunk(slot, 0, columns * rows.block_rows) for slot in range(num_rows)]
    return torch.stack(chunks)


def quantized(rows: PagedRows) -> PagedRows:
    """The same rows as FP8 in the same blocks; NaN stays NaN."""
    values, scales = quantize_rows(rows.values.flatten(0, 1))
    shape = rows.values.shape
    return PagedRows(values.view(shape), rows.table, scales.view(shape[:2]))


def owned_blocks(rows: PagedRows) -> Tensor:
    """Ids of the blocks that slots have, ascending."""
    ids: Tensor = rows.table[:-1].unique()
    return ids


def unowned_blocks(rows: PagedRows) -> Tensor:
    """Ids of the blocks that no slot has, but for the null and the trash block."""
    ids = torch.arange(FIRST_BLOCK, len(rows.values))
    return ids[~torch.isin(ids, owned_blocks(rows))]
