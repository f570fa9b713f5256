"""The DSA indexer over packed rows: pool keys, index scores, the selection, and the loss that teaches it.

Its inputs are detached: the loss reaches the indexer's own parameters only.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from twinspark_demo.training.model.chains import Chains
from twinspark_demo.training.model.layout import RowLayout
from twinspark_demo.training.model.parameters import Weights
from twinspark_engine.model.config import ModelConfig

KEY_NORM_EPS = 1e-6
QUERY_CHUNK = 1024  # rows a sequence whose scores exist at a time


@dataclass(frozen=True, slots=True)
class Indexer:
    """One DSA block's indexer, bound to the rows of one forward."""

    w: Weights  # below `indexer.`
    config: ModelConfig
    chains: Chains
    layout: RowLayout

    def pool_keys(self, x: Tensor) -> Tensor:
        """x [B, T, D] -> [B, T / pool, index dim]."""
        x = x.detach()
        raw = F.linear(x, self.w("wk.weight")).float()
        weight, bias = self.w.master("k_norm.weight"), self.w.master("k_norm.bias")
        keys = F.layer_norm(raw, raw.shape[-1:], weight, bias, KEY_NORM_EPS).to(x.dtype)
        gates = F.linear(x, self.w("index_kpool_compress_gate"))
        return self.chains.pool_keys(keys, gates, self.w.master("index_kpool_compress_ape"))

    def scores(self, x: Tensor, q_residual: Tensor, pool_keys: Tensor) -> Tensor:
        """x [B, Q, D], q_residual [B, Q, R] -> index scores of all pools, fp32 [B, Q, T / pool]."""
        heads, width = self.config.index_n_heads, self.config.index_head_dim
        queries = F.linear(q_residual.detach(), self.w("wq_b.weight")).unflatten(-1, (heads, width))
        weights = F.linear(x.detach(), self.w("weights_proj.weight")).float() * heads**-0.5
        dots = queries.float().transpose(1, 2) @ pool_keys.float().transpose(1, 2)[:, None]
        return self.chains.weigh_heads(dots, weights, width**-0.5)

    @torch.no_grad()
    def selection(self, x: Tensor, q_residual: Tensor, pool_keys: Tensor) -> Tensor:
        """bool [B, T queries, T keys]: tokens of the best pools, ties to the earlier, and the incomplete last pool."""
        parts = []
        for start in range(0, x.shape[1], QUERY_CHUNK):
            rows = slice(start, start + QUERY_CHUNK)
            queries = torch.arange(x.shape[1], device=x.device)[rows].expand(x.shape[0], -1)
            first = self.layout.first[:, rows]
            candidates = self.layout.candidates(queries, first, self.config.index_kpool)
            scores = self.scores(x[:, rows], q_residual[:, rows], pool_keys)
            chosen = best_pools(scores, candidates, self.config.num_selected_pools)
            parts.append(tokens_of_pools(chosen, queries, self.config.index_kpool))
        return torch.cat(parts, dim=1)

    def loss(self, x: Tensor, q_residual: Tensor, pool_keys: Tensor, q: Tensor, k: Tensor, rows: int) -> Tensor:
        """Divergence of the scores from dense attention's mass by pool, over `rows` random queries a sequence.

        q [B, H, T, N] and k [B, H, T, N] of the attention itself; fp32 scalar, a mean over the rows that have at least
        two candidates, where those that a selection would cut count double.
        """
        batch, heads, width, dim = q.shape
        chosen = (torch.rand(batch, rows, device=q.device) * width).long()
        first = torch.gather(self.layout.first, 1, chosen)
        candidates = self.layout.candidates(chosen, first, self.config.index_kpool)
        with torch.no_grad():
            picked = q.gather(2, chosen[:, None, :, None].expand(-1, heads, -1, dim))
            visible = torch.gather(self.layout.visible, 1, chosen[..., None].expand(-1, -1, width))
            logits = picked.float() @ k.float().transpose(2, 3) * dim**-0.5
            mass = logits.masked_fill(~visible[:, None], -torch.inf).softmax(-1).mean(1)
            target = mass.unflatten(-1, (-1, self.config.index_kpool)).sum(-1) * candidates
            target = target / target.sum(-1, keepdim=True).clamp(min=1e-20)
        scores = self.scores(_take(x, chosen), _take(q_residual, chosen), pool_keys)
        return masked_divergence(target, scores, candidates, self.config.num_selected_pools)


def _take(values: Tensor, rows: Tensor) -> Tensor:
    """values [B, T, D], rows [B, Q] -> [B, Q, D]."""
    return values.gather(1, rows[..., None].expand(-1, -1, values.shape[-1]))


def masked_divergence(target: Tensor, scores: Tensor, candidates: Tensor, cut: int) -> Tensor:
    """KL(target || softmax(scores)) over the candidates, [B, Q, P] each, as Indexer.loss averages it."""
    students = scores.masked_fill(~candidates, torch.finfo(scores.dtype).min).log_softmax(-1)
    divergence = (torch.xlogy(target, target) - target * students.masked_fill(~candidates, 0.0)).sum(-1)
    count = candidates.sum(-1)
    weights = (count >= 2).float() + (count > cut).float()
    return (divergence * weights).sum() / weights.sum().clamp(min=1.0)


def best_pools(scores: Tensor, candidates: Tensor, count: int) -> Tensor:
    """bool like scores [B, Q, P]: the `count` best candidates, all if there are fewer; ties to the lower index."""
    if scores.shape[-1] <= count:
        return candidates
    scores = scores.masked_fill(~candidates, -torch.inf)
    last = torch.topk(scores, count, sorted=False).values.amin(-1, keepdim=True)
    above, tied = scores > last, scores == last
    room = count - above.sum(-1, keepdim=True)
    return (above | (tied & (tied.cumsum(-1, dtype=torch.int32) <= room))) & candidates


def tokens_of_pools(chosen: Tensor, queries: Tensor, pool: int) -> Tensor:
    """chosen bool [B, Q, P], queries [B, Q] -> bool [B, Q, P pool]: their tokens, and the query's incomplete pool's."""
    selected = chosen[..., None].expand(*chosen.shape, pool).flatten(-2)
    keys = torch.arange(selected.shape[-1], device=chosen.device)
    ends = queries[..., None] + 1
    return selected | ((keys < ends) & (keys >= ends - ends % pool))
