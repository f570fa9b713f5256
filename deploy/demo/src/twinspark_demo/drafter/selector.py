"""The candidate selector: of each row's best tokens the one that also follows well on the draft before it."""

import torch
import torch.nn.functional as F
from torch import Tensor

from twinspark_demo.drafter.config import DrafterConfig
from twinspark_demo.training.model.parameters import Weights

EDGE_WEIGHT = 0.6
"""Of the selector's score beside the head's logit, in training as in the engine."""
_PREFIX = "candidate_selector."


def edges(rows: Tensor, before: Tensor, candidates: Tensor, w: Weights) -> Tensor:
    """rows [..., D], tokens before them [...], candidates [..., K] -> how well each follows, fp32 [..., K]."""
    inner = w.under(_PREFIX)
    projected = F.linear(rows, inner("hidden_projection.weight")).float()
    keys = F.embedding(before, inner.master("predecessor_codebook")) * projected
    return (F.embedding(candidates, inner.master("successor_codebook")) * keys[..., None, :]).sum(-1)


def selector_loss(
    rows: Tensor, logits: Tensor, labels: Tensor, before: Tensor, weights: Tensor, w: Weights, c: DrafterConfig
) -> Tensor:
    """Weighted mean cross entropy over each row's candidates, the label put among them where it is missing.

    rows [N, D], logits [N, V] of the target's head, labels, before (the true token before each) and weights [N].
    """
    candidates = logits.detach().topk(c.selector_top_k, dim=-1).indices
    is_missing = ~(candidates == labels[:, None]).any(-1)
    candidates[:, -1] = torch.where(is_missing, labels, candidates[:, -1])
    scores = logits.gather(1, candidates).float() + EDGE_WEIGHT * edges(rows, before, candidates, w)
    picked = torch.where(candidates == labels[:, None], scores, 0.0).sum(-1)
    return ((scores.logsumexp(-1) - picked) * weights).sum() / weights.sum().clamp(min=1e-6)


@torch.no_grad()
def walk(rows: Tensor, logits: Tensor, pending: Tensor, w: Weights, c: DrafterConfig) -> Tensor:
    """Greedy drafts int64 [N, 7]: each row's candidate with the best logit and edge from the draft before it.

    rows [N, 7, D], logits [N, 7, V], pending int64 [N]: the token before the first draft.
    """
    best = logits.float().topk(c.selector_top_k, dim=-1)
    drafts: list[Tensor] = []
    before = pending
    for place in range(c.num_drafts):
        candidates = best.indices[:, place]
        scores = best.values[:, place] + EDGE_WEIGHT * edges(rows[:, place], before, candidates, w)
        before = candidates.gather(1, scores.argmax(-1, keepdim=True)).squeeze(1)
        drafts.append(before)
    return torch.stack(drafts, dim=1)
