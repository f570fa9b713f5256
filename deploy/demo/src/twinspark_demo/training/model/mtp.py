"""The MTP layer, and chains of it as a server drafts with.

Row j of every depth holds the token j + 1 and predicts the token j + 2. The first depth reads the main model's row j. A
further depth reads row j - 1 of the depth before, so that its row j is what a server computes when it drafts the
token j + 2 as its depth-th draft; it exists where the document's position is at least depth - 1.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from twinspark_demo.training.model.chains import Chains
from twinspark_demo.training.model.dsa import DsaBlock, KeyValues
from twinspark_demo.training.model.layout import RowLayout, shift_rows
from twinspark_demo.training.model.moe import mixture
from twinspark_demo.training.model.parameters import Weights
from twinspark_engine.model.config import ModelConfig


@dataclass(frozen=True, slots=True)
class MtpStep:
    """One depth's result."""

    y: Tensor  # [B, T, D] after shared_head.norm: what the main head and the next depth read
    keys: KeyValues
    load: Tensor  # fp32 [E]
    index_loss: Tensor | None


@dataclass(frozen=True, slots=True)
class MtpLayer:
    """The MTP layer, bound to the rows of one forward."""

    w: Weights  # below the layer's prefix
    config: ModelConfig
    chains: Chains
    layout: RowLayout
    block: DsaBlock

    def run(self, embedded: Tensor, hidden: Tensor, depth: int) -> list[MtpStep]:
        """embedded [B, T, D]: the rows' own tokens; hidden [B, T, D]: the main model's rows after the final norm."""
        following = shift_rows(embedded, -1).masked_fill(self.layout.starts[..., None], 0.0)
        following = self._norm(following, "enorm.weight")
        steps: list[MtpStep] = []
        for _ in range(depth):
            source = shift_rows(steps[-1].y, 1) if steps else hidden
            steps.append(self._step(following, source, [step.keys for step in steps]))
        return steps

    def _step(self, following: Tensor, source: Tensor, chain: list[KeyValues]) -> MtpStep:
        x = torch.cat([following, self._norm(source, "hnorm.weight")], dim=-1)
        x = F.linear(x, self.w("eh_proj.weight"))
        attention = self.block(self._norm(x, "input_layernorm.weight"), chain)
        x = x + attention.y
        branch = self._norm(x, "post_attention_layernorm.weight").flatten(0, 1)
        y, load = mixture(branch, self.w.under("mlp."), self.config, self.chains, self.block.options.expert_noise)
        x = x + y.view_as(x)
        return MtpStep(self._norm(x, "shared_head.norm.weight"), attention.keys, load, attention.index_loss)

    def _norm(self, x: Tensor, name: str) -> Tensor:
        return self.chains.rms_norm(x, self.w.master(name), self.config.rms_norm_eps)
