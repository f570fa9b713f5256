"""The DSA layer's attention over packed rows: expanded from the latent, dense or by the indexer's selection."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from twinspark_demo.training.model.batch import ForwardOptions
from twinspark_demo.training.model.chains import Chains
from twinspark_demo.training.model.indexer import Indexer
from twinspark_demo.training.model.layout import RowLayout
from twinspark_demo.training.model.parameters import Weights
from twinspark_engine.model.config import ModelConfig


@dataclass(frozen=True, slots=True)
class KeyValues:
    """What rows leave for later queries."""

    k: Tensor  # [B, H, T, N]
    v: Tensor  # [B, H, T, V]
    pool_keys: Tensor | None  # [B, T / pool, index dim], where an indexer ran


@dataclass(frozen=True, slots=True)
class DsaOutput:
    """One DSA block's result."""

    y: Tensor  # [B, T, D] after o_proj
    keys: KeyValues
    index_loss: Tensor | None


@dataclass(frozen=True, slots=True)
class DsaBlock:
    """One DSA block, bound to the rows of one forward."""

    w: Weights  # below `self_attn.`
    config: ModelConfig
    chains: Chains
    layout: RowLayout
    options: ForwardOptions

    def __call__(self, x: Tensor, chain: Sequence[KeyValues] = ()) -> DsaOutput:
        """x [B, T, D] after the norm. chain: see mtp.py; what earlier chained steps left, the first step first."""
        q_residual, q, k, v = self._project(x)
        indexer = Indexer(self.w.under("indexer."), self.config, self.chains, self.layout)
        needs_loss = self.options.indexer_rows > 0 and not chain
        pools = chain[0].pool_keys if chain else None
        if pools is None and (needs_loss or self._selects(x)):
            pools = indexer.pool_keys(x)
        loss = None
        if pools is not None and needs_loss:
            loss = indexer.loss(x, q_residual, pools, q, k, self.options.indexer_rows)
        mask = self.layout.visible
        if pools is not None and self._selects(x):
            mask = indexer.selection(x, q_residual, pools)
        own = KeyValues(k, v, pools)
        o = attend(q, (*chain, own), mask)
        return DsaOutput(F.linear(o, self.w("o_proj.weight")), own, loss)

    def _selects(self, x: Tensor) -> bool:
        return self.options.sparse and x.shape[1] // self.config.index_kpool > self.config.num_selected_pools

    def _project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """x -> normed q residual [B, T, R], q [B, H, T, N], k [B, H, T, N], v [B, H, T, V]."""
        heads, eps = self.config.num_attention_heads, self.config.rms_norm_eps
        latents = F.linear(x, self.w("q_a_proj.weight", "kv_a_proj_with_mqa.weight"))
        q_a, kv_a = latents.split([self.config.q_lora_rank, self.config.kv_lora_rank], dim=-1)
        q_residual = self.chains.rms_norm(q_a, self.w.master("q_a_layernorm.weight"), eps)
        latent = self.chains.rms_norm(kv_a, self.w.master("kv_a_layernorm.weight"), eps)
        q = F.linear(q_residual, self.w("q_b_proj.weight")).unflatten(-1, (heads, -1)).transpose(1, 2)
        kv = F.linear(latent, self.w("kv_b_proj.weight")).unflatten(-1, (heads, -1)).transpose(1, 2)
        k, v = kv.split([self.config.qk_nope_head_dim, self.config.v_head_dim], dim=-1)
        return q_residual, q, k, v


def attend(q: Tensor, steps: Sequence[KeyValues], mask: Tensor) -> Tensor:
    """q [B, H, T, N], mask bool [B, T, T] -> [B, T, H V].

    With one step, rows see the rows that mask says. With d steps, the last of them asking, a row sees as in a chain of
    d drafts: the d - 1 newest positions as chained steps wrote them (its own: the last), older ones from the first.
    """
    k, v = (torch.cat([getattr(step, part) for step in steps], dim=2) for part in ("k", "v"))
    if len(steps) > 1:
        rows = torch.arange(q.shape[2], device=q.device)
        behind = rows[:, None] - rows
        newest = len(steps) - 1
        parts = [mask & (behind >= newest)]
        parts += [mask & (behind == newest - step) for step in range(1, len(steps))]
        mask = torch.cat(parts, dim=-1)
    o = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None])
    return o.transpose(1, 2).flatten(2)
