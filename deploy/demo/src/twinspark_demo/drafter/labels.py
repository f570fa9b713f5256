"""Where blocks begin in training, and what their rows should draft: the target's own most likely tokens."""

from dataclasses import dataclass

import torch
from torch import Tensor

from twinspark_demo.drafter.blocks import PackedRows
from twinspark_demo.drafter.config import DrafterConfig

STEP_WEIGHT = 0.85  # a draft's loss weight, over that of the draft before it


@dataclass(frozen=True, slots=True)
class Labels:
    """Of the drafts of A blocks in B rows, [B, A, 7] each."""

    tokens: Tensor  # int64: what the target says there
    before: Tensor  # int64: the text's token before it
    weights: Tensor  # fp32 loss weight; 0 behind the reply's end, and where the text is no longer what the target says

    @classmethod
    def of(cls, rows: PackedRows, is_answer: Tensor, said: Tensor, anchors: Tensor, c: DrafterConfig) -> "Labels":
        """is_answer bool [B, T]; said int64 [B, T]: the target's most likely token behind each row."""
        last = rows.tokens.shape[1] - 1
        steps = torch.arange(1, c.block_size, device=anchors.device)
        unbounded = anchors[..., None] + steps
        places = unbounded.clamp(max=last).flatten(1)
        tokens = said.gather(1, (places - 1).clamp(min=0)).view_as(unbounded)
        text = rows.tokens.gather(1, places).view_as(unbounded)
        exists = is_answer.gather(1, places).view_as(unbounded) & (unbounded <= last)
        exists &= is_answer.gather(1, anchors)[..., None]
        same = rows.documents.gather(1, places).view_as(unbounded) == rows.documents.gather(1, anchors)[..., None]
        agrees = (tokens == text).long().cumprod(-1).bool()
        still = torch.cat((torch.ones_like(agrees[..., :1]), agrees[..., :-1]), dim=-1)
        weights = (exists & same).long().cumprod(-1).bool() & still
        before = rows.tokens.gather(1, (places - 1).clamp(min=0)).view_as(unbounded)
        return cls(tokens, before, weights * STEP_WEIGHT ** (steps - 1).float())


def choose_anchors(is_answer: Tensor, documents: Tensor, count: int) -> Tensor:
    """int64 [B, count]: first tokens of replies, then random ones, that a token of the same reply follows.

    is_answer bool, documents int64, [B, T] each. Where a row has fewer, places without use fill up: they have no label.
    """
    after, document_after = is_answer.roll(-1, 1), documents.roll(-1, 1)
    is_followed = is_answer & after & (documents == document_after)
    is_followed[:, -1] = False
    is_first = ~(is_answer.roll(1, 1) & (documents == documents.roll(1, 1)))
    is_first[:, 0] = True
    drawn = torch.rand(is_answer.shape, device=is_answer.device)
    return torch.topk((drawn + is_first) * is_followed, count, dim=1).indices
