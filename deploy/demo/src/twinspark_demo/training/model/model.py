"""DemoModel: GLM-5.3-Flash with its MTP layer, trainable on packed rows, capturable in one CUDA graph.

Nothing in a forward depends on values on the host: no sizes, no offsets, no branches.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from twinspark_demo.training.hyper_connection import STREAMS, hc_post, hc_pre
from twinspark_demo.training.model.batch import ForwardOptions, Losses, Predictions, Tapped, TrainingBatch
from twinspark_demo.training.model.chains import Chains
from twinspark_demo.training.model.dsa import DsaBlock
from twinspark_demo.training.model.experts import expert_matrices, set_expert_matrices
from twinspark_demo.training.model.kda import kda_attention
from twinspark_demo.training.model.layout import RowLayout, shift_rows
from twinspark_demo.training.model.moe import mixture, swiglu
from twinspark_demo.training.model.mtp import MtpLayer, MtpStep
from twinspark_demo.training.model.parameters import (
    BIAS_SUFFIX,
    Weights,
    experts_name,
    initial,
    plant,
    trained_shapes,
)
from twinspark_engine.model.config import AttentionKind, MlpKind, ModelConfig
from twinspark_engine.model.weights.names import EMBED, HEAD, NORM, layer_prefix, moe_layers

BALANCE_STEP = 1e-3


@dataclass(slots=True)
class _Forward:
    """Rows after the final norm, and what the layers report beside them."""

    embedded: Tensor  # [B, T, D]
    hidden: Tensor  # [B, T, D]
    steps: list[MtpStep]
    taps: dict[int, Tensor] = field(default_factory=dict)  # by layer, [B, T, D]
    loads: list[Tensor] = field(default_factory=list)
    index_losses: list[Tensor] = field(default_factory=list)
    memory_losses: list[Tensor] = field(default_factory=list)


class DemoModel(nn.Module):
    """Parameters are fp32 and carry their published names; routed experts are stacked, see parameters.py."""

    def __init__(
        self, config: ModelConfig, *, seed: int = 0, compiled: bool = False, compute_dtype: torch.dtype | None = None
    ) -> None:
        """compute_dtype: of streams and products; None is bfloat16 on a GPU and float32 on the CPU."""
        super().__init__()
        self.config = config
        self.compute_dtype = compute_dtype
        self._chains = Chains.build(compiled)
        generator = torch.Generator().manual_seed(seed)
        for name, shape in trained_shapes(config).items():
            plant(self, name, initial(name, shape, config, generator))

    def forward(self, batch: TrainingBatch, options: ForwardOptions) -> Losses:
        """All losses of one batch. Raises nothing that depends on the batch's values."""
        weights = self._weights()
        run = self._run(batch, options, weights)
        main, correct = self._loss(run.hidden, batch, weights, depth=0)
        drafts = [self._loss(step.y, batch, weights, depth) for depth, step in enumerate(run.steps, 1)]
        index_losses = run.index_losses or [torch.zeros((), device=main.device)]
        return Losses(
            main=main,
            mtp=tuple(loss for loss, _ in drafts),
            indexer=torch.stack(index_losses).mean(),
            memory=torch.stack(run.memory_losses).mean(),
            correct=correct,
            mtp_correct=drafts[0][1],
            router_load=torch.stack(run.loads),
        )

    def predictions(self, batch: TrainingBatch, options: ForwardOptions) -> Predictions:
        """The logits behind the losses; gradients as the caller's context says."""
        weights = self._weights()
        run = self._run(batch, options, weights)
        head = weights(HEAD)
        return Predictions(F.linear(run.hidden, head), tuple(F.linear(step.y, head) for step in run.steps), run.hidden)

    def embed(self, tokens: Tensor) -> Tensor:
        """tokens int64 [B, T] -> their rows of the embedding, [B, T, D] in the compute dtype."""
        weights = self._weights()
        return F.embedding(tokens, weights.master(EMBED)).to(weights.dtype)

    def read(self, batch: TrainingBatch, options: ForwardOptions, embedded: Tensor) -> tuple[Tensor, Tensor]:
        """The main loss, and bool [B, T]: this token was the most likely one; the MTP layer does not run.

        embedded [B, T, D]: what the layers read in place of the tokens' own rows.
        """
        weights = self._weights()
        run = self._run_layers(batch, options, weights, RowLayout.of(batch), embedded=embedded)
        return self._loss(run.hidden, batch, weights, depth=0)

    def tapped(self, batch: TrainingBatch, options: ForwardOptions, layers: Sequence[int]) -> Tapped:
        """Logits, and what these layers leave on the streams; the MTP layer does not run."""
        weights = self._weights()
        run = self._run_layers(batch, options, weights, RowLayout.of(batch), tapped=layers)
        taps = torch.cat([run.taps[layer] for layer in layers], dim=-1)
        return Tapped(F.linear(run.hidden, weights(HEAD)), taps)

    @torch.no_grad()
    def balance(self, load: Tensor) -> None:
        """Moves each router's bias towards experts with fewer rows than the mean; load [MoE layers, E]."""
        buffers = dict(self.named_buffers())
        for layer, counts in zip(moe_layers(self.config, has_mtp=True), load.float(), strict=True):
            bias = buffers[f"{layer_prefix(layer)}mlp.gate.{BIAS_SUFFIX}"]
            bias.add_(BALANCE_STEP * torch.sign(counts.mean() - counts))

    def plain_tensors(self) -> dict[str, Tensor]:
        """Every published tensor but the routed experts' matrices: views of parameters and biases, fp32."""
        tensors = dict(self.named_parameters()) | dict(self.named_buffers())
        return {name: tensor.detach() for name, tensor in tensors.items() if ".mlp.experts." not in name}

    def expert_matrices(self) -> list[tuple[str, Tensor]]:
        """(published prefix without its last dot, view [out, in]) of every routed expert's projection."""
        return expert_matrices(self.config, dict(self.named_parameters()))

    def set_expert_matrices(self, matrices: Mapping[str, Tensor]) -> None:
        """Overwrites every routed expert's projection; raises KeyError where a prefix is missing."""
        set_expert_matrices(self.expert_matrices(), matrices)

    def freeze_experts(self, matrices: Mapping[str, Tensor]) -> None:
        """The same, and they train no more."""
        self.set_expert_matrices(matrices)
        for layer in moe_layers(self.config, has_mtp=True):
            for part in ("gate_up", "down"):
                self.get_parameter(experts_name(layer, part)).requires_grad_(False)

    def _weights(self) -> Weights:
        tensors: dict[str, Tensor] = dict(self.named_parameters()) | dict(self.named_buffers())
        on_gpu = tensors[EMBED].device.type == "cuda"
        return Weights(tensors, self.compute_dtype or (torch.bfloat16 if on_gpu else torch.float32))

    def _run(self, batch: TrainingBatch, options: ForwardOptions, weights: Weights) -> _Forward:
        config, layout = self.config, RowLayout.of(batch)
        run = self._run_layers(batch, options, weights, layout)
        below = weights.under(layer_prefix(config.num_hidden_layers))
        block = DsaBlock(below.under("self_attn."), config, self._chains, layout, options)
        mtp = MtpLayer(below, config, self._chains, layout, block)
        run.steps = mtp.run(run.embedded, run.hidden, options.mtp_depth)
        run.loads.append(torch.stack([step.load for step in run.steps]).sum(0))
        run.index_losses += [step.index_loss for step in run.steps if step.index_loss is not None]
        return run

    def _run_layers(
        self,
        batch: TrainingBatch,
        options: ForwardOptions,
        weights: Weights,
        layout: RowLayout,
        tapped: Sequence[int] = (),
        embedded: Tensor | None = None,
    ) -> _Forward:
        """The layers but the MTP layer, and the final norm. embedded: rows in place of the tokens' own."""
        config = self.config
        if embedded is None:
            embedded = F.embedding(batch.tokens, weights.master(EMBED)).to(weights.dtype)
        run = _Forward(embedded, embedded, [])
        streams = embedded.flatten(0, 1)[:, None].expand(-1, STREAMS, -1).contiguous()
        for layer in range(config.num_hidden_layers):
            streams = self._layer(streams, layer, weights, layout, options, run)
            if layer in tapped:
                run.taps[layer] = self._chains.stream_mean(streams).view_as(embedded)
        mean = self._chains.stream_mean(streams).view_as(embedded)
        run.hidden = self._chains.rms_norm(mean, weights.master(NORM), config.rms_norm_eps)
        return run

    def _layer(
        self,
        streams: Tensor,
        layer: int,
        weights: Weights,
        layout: RowLayout,
        options: ForwardOptions,
        run: _Forward,
    ) -> Tensor:
        """streams [N, 4, D] through one layer's attention and MLP; loads and index losses are added to run."""
        w = weights.under(layer_prefix(layer))
        branch, post, comb = self._enter(streams, w, "attn")
        x = self._chains.rms_norm(branch, w.master("input_layernorm.weight"), self.config.rms_norm_eps)
        y = self._attend(x.view_as(run.embedded), layer, w.under("self_attn."), layout, options, run)
        streams = hc_post(streams, y.flatten(0, 1), post, comb)
        branch, post, comb = self._enter(streams, w, "ffn")
        x = self._chains.rms_norm(branch, w.master("post_attention_layernorm.weight"), self.config.rms_norm_eps)
        if self.config.mlp_kinds[layer] is MlpKind.DENSE:
            y = swiglu(x, w.under("mlp."), self.config, self._chains)
        else:
            y, load = mixture(x, w.under("mlp."), self.config, self._chains, options.expert_noise)
            run.loads.append(load)
        return hc_post(streams, y, post, comb)

    def _enter(self, streams: Tensor, w: Weights, site: str) -> tuple[Tensor, Tensor, Tensor]:
        fn, base, scale = (w.master(f"hc_{site}_{part}") for part in ("fn", "base", "scale"))
        config = self.config
        return hc_pre(
            streams,
            fn,
            base,
            scale,
            rms_eps=config.rms_norm_eps,
            hc_eps=config.hc_eps,
            sinkhorn_iters=config.hc_sinkhorn_iters,
        )

    def _attend(
        self, x: Tensor, layer: int, w: Weights, layout: RowLayout, options: ForwardOptions, run: _Forward
    ) -> Tensor:
        if self.config.attention_kinds[layer] is AttentionKind.KDA:
            kda = kda_attention(x, w, layout, self.config, self._chains)
            run.memory_losses.append(kda.memory_loss)
            return kda.y
        output = DsaBlock(w, self.config, self._chains, layout, options)(x)
        if output.index_loss is not None:
            run.index_losses.append(output.index_loss)
        return output.y

    def _loss(self, rows: Tensor, batch: TrainingBatch, weights: Weights, depth: int) -> tuple[Tensor, Tensor]:
        """Loss of the main rows (depth 0: the next token) or of one MTP depth (the one after it), and who was right."""
        ahead = 1 if depth == 0 else 2
        exists = batch.positions > depth
        targets = shift_rows(batch.tokens, -ahead)
        counted = shift_rows(batch.weights * exists, -ahead)
        logits = F.linear(rows, weights(HEAD)).flatten(0, 1)
        loss, right = self._chains.cross_entropy(logits, targets.flatten(), counted.flatten())
        return loss, shift_rows(right.view_as(exists), ahead) & exists
