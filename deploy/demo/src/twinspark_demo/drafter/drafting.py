"""What a drafter drafts behind given tokens, and in how many rounds a reply is then said.

A round is one verification of a block's drafts by the target: it keeps the drafts that are its own tokens, up to the
first that is not, and one token more, its own in that place.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from twinspark_demo.drafter.blocks import Blocks, PackedRows
from twinspark_demo.drafter.model import Drafter
from twinspark_demo.drafter.selector import walk


@torch.no_grad()
def draft(drafter: Drafter, taps: Tensor, rows: PackedRows, anchors: Tensor, lent: tuple[Tensor, Tensor]) -> Tensor:
    """Greedy drafts int64 [B, A, 7] behind each pending token.

    taps [B, T, taps D], anchors int64 [B, A]; lent: embedding and head of the target, [V, D] each.
    """
    embedding, head = lent
    hidden = drafter(taps, rows.positions, Blocks.of(rows, anchors, drafter.config), embedding).flatten(0, 1)
    logits = F.linear(hidden, head.to(hidden.dtype))
    pending = rows.tokens.gather(1, anchors).flatten()
    return walk(hidden, logits, pending, drafter.weights(), drafter.config).view(*anchors.shape, -1)


def kept_each_round(said: Sequence[int], drafts: Sequence[Sequence[int]]) -> list[int]:
    """Tokens that each round of one reply keeps. said: its n tokens, the first of which comes from the prompt's pass.

    drafts[i]: drafted behind token i, where tokens up to i are known and those before it have run.
    """
    kept: list[int] = []
    place, last = 0, len(said) - 1
    while place < last:
        accepted = 0
        for token in drafts[place]:
            if place + accepted == last or token != said[place + accepted + 1]:
                break
            accepted += 1
        kept.append(min(accepted + 1, last - place))
        place += kept[-1]
    return kept
