"""Blocks: the places of packed rows where drafts begin, and what the rows of a block are and see.

A block's anchor is the row of its pending token, the newest that is known and that the target has not run yet. Block
row 0 is that token, rows 1 to 7 are masks; row r stands at the anchor's position + r and drafts the token there.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from twinspark_demo.drafter.config import DrafterConfig


@dataclass(frozen=True, slots=True)
class PackedRows:
    """B rows of T tokens, several documents in each; as in row_batch.py, on the device."""

    tokens: Tensor  # int64 [B, T]
    documents: Tensor  # int64 [B, T]
    positions: Tensor  # int64 [B, T]


@dataclass(frozen=True, slots=True)
class Blocks:
    """A blocks in each of B packed rows; all of one row are drafted in one pass, unseen by each other."""

    ids: Tensor  # int64 [B, A, R] token of each block row
    positions: Tensor  # int64 [B, A, R] within the document
    visible: Tensor  # bool [B, A R, T + A R]: context rows, then all block rows

    @classmethod
    def of(cls, rows: PackedRows, anchors: Tensor, config: DrafterConfig) -> "Blocks":
        """anchors int64 [B, A]: row index of each pending token. No value is read on the host."""
        steps = torch.arange(config.block_size, device=anchors.device)
        pending = rows.tokens.gather(1, anchors)
        ids = torch.where(steps == 0, pending[..., None], config.mask_token_id)
        return cls(ids, rows.positions.gather(1, anchors)[..., None] + steps, _visible(rows, anchors, steps, config))


def _visible(rows: PackedRows, anchors: Tensor, steps: Tensor, config: DrafterConfig) -> Tensor:
    """Row r sees the context of its document that is less than a window back, and its own whole block."""
    batch, num_blocks = anchors.shape
    context = torch.arange(rows.tokens.shape[1], device=anchors.device)
    first = anchors - rows.positions.gather(1, anchors)
    inside = (context >= first[..., None]) & (context < anchors[..., None])
    behind = (anchors[..., None] + steps)[..., None] - context
    seen = (inside[:, :, None] & (behind < config.sliding_window)).flatten(1, 2)
    blocks = torch.arange(num_blocks, device=anchors.device).repeat_interleave(len(steps))
    own = (blocks[:, None] == blocks).expand(batch, -1, -1)
    return torch.cat((seen, own), dim=-1)
