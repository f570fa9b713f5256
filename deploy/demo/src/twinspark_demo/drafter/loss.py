"""The drafter's two losses: of the target's head on each row alone, and of the selector among the best tokens."""

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from twinspark_demo.drafter.blocks import Blocks, PackedRows
from twinspark_demo.drafter.labels import Labels
from twinspark_demo.drafter.model import Drafter
from twinspark_demo.drafter.selector import selector_loss
from twinspark_demo.drafter.target import Reading, Target
from twinspark_demo.training.model.chains import cross_entropy


@dataclass(frozen=True, slots=True)
class DraftLosses:
    """fp32 scalars; the first two carry gradients."""

    unary: Tensor
    selector: Tensor
    right: Tensor  # share of labelled rows whose most likely token is right
    first_right: Tensor  # the same of first drafts


def draft_losses(
    drafter: Drafter, target: Target, reading: Reading, rows: PackedRows, is_answer: Tensor, anchors: Tensor
) -> DraftLosses:
    """Of the blocks at these anchors [B, A]."""
    config, weights = drafter.config, drafter.weights()
    labels = Labels.of(rows, is_answer, reading.said, anchors, config)
    blocks = Blocks.of(rows, anchors, config)
    hidden = drafter(reading.taps, rows.positions, blocks, target.embedding).flatten(0, 2)
    logits = F.linear(hidden, target.head.to(hidden.dtype))
    tokens, before, weighed = labels.tokens.flatten(), labels.before.flatten(), labels.weights.flatten()
    unary, right = cross_entropy(logits, tokens, weighed)
    selector = selector_loss(hidden, logits, tokens, before, weighed, weights, config)
    counted = labels.weights > 0
    right = right.view_as(counted) & counted
    return DraftLosses(
        unary,
        selector,
        right.sum() / counted.sum().clamp(min=1),
        right[..., 0].sum() / counted[..., 0].sum().clamp(min=1),
    )
