"""The forward of GLM-5.3-Flash on one rank: packed rows in, rows after the final norm out, logits by vocabulary slice.

Two exchanges a layer: the partial sums of o_proj and of the down projections travel in fp32 and are added rank 0 first.
Everything else is computed by every rank alike, so all ranks hold the same bits.
"""

import torch
from torch import Tensor

from twinspark_engine.model.config import ModelConfig
from twinspark_engine.model.dsa_layer import dsa_attention
from twinspark_engine.model.kda_layer import kda_attention
from twinspark_engine.model.mlp import run_mlp
from twinspark_engine.model.parameters import HyperConnection, KdaWeights, LayerWeights, ModelWeights
from twinspark_engine.model.rows import Rows
from twinspark_engine.model.state import DsaState, KdaState, ModelState
from twinspark_engine.ranks.transport import Transport, sum_in_rank_order
from twinspark_kernels.embedding import embed
from twinspark_kernels.hyper_connection import hc_post, hc_pre
from twinspark_kernels.linear import linear
from twinspark_kernels.rms_norm import rms_norm
from twinspark_kernels.row_class import RowClass

NUM_STREAMS = 4


class Model:
    """Weights of one rank and how to run them; holds no state of requests. Used by the step thread only."""

    def __init__(self, config: ModelConfig, weights: ModelWeights, transport: Transport) -> None:
        self.config = config
        self._weights = weights
        self._transport = transport

    @property
    def vocab_offset(self) -> int:
        """Token id of the first column of this rank's logits."""
        return self._weights.vocab_offset

    @property
    def num_vocab_columns(self) -> int:
        """Columns of this rank's logits."""
        return self._weights.head.shape[0]

    def forward(self, rows: Rows, state: ModelState) -> Tensor:
        """Run all layers over the rows and advance their slots' state.

        Returns [T, D] after the final norm, the same bits on every rank. Raises TransportError if an exchange
        failed: the state of the rows' slots is then lost.
        """
        embedded = embed(rows.ids, self._weights.embed, rows.images)
        streams = embedded.unsqueeze(1).repeat(1, NUM_STREAMS, 1)
        for weights, layer_state in zip(self._weights.layers, state.layers, strict=True):
            streams = self._layer(streams, rows, weights, layer_state, state)
        return rms_norm(_stream_mean(streams), self._weights.norm, self.config.rms_norm_eps)

    def logits(self, hidden: Tensor, row_class: RowClass) -> Tensor:
        """Rows after the final norm [T, D] -> [T, vocab_size / world_size] of this rank, in the compute dtype."""
        return linear(hidden, self._weights.head, row_class=row_class)

    def _layer(
        self, streams: Tensor, rows: Rows, weights: LayerWeights, state: KdaState | DsaState, whole: ModelState
    ) -> Tensor:
        branch, post, comb = self._enter(streams, weights.attn_hc, rows.row_class)
        x = rms_norm(branch, weights.input_layernorm, self.config.rms_norm_eps)
        y = self._exchange(self._attend(x, rows, weights, state, whole), x.dtype)
        streams = hc_post(streams, y, post, comb)
        branch, post, comb = self._enter(streams, weights.ffn_hc, rows.row_class)
        x = rms_norm(branch, weights.post_attention_layernorm, self.config.rms_norm_eps)
        y = self._exchange(run_mlp(x, weights.mlp, self.config, rows.row_class), x.dtype)
        return hc_post(streams, y, post, comb)

    def _enter(self, streams: Tensor, site: HyperConnection, row_class: RowClass) -> tuple[Tensor, Tensor, Tensor]:
        """Collapse streams [T, 4, D] to the branch input [T, D], with the coefficients of the way out."""
        return hc_pre(
            streams,
            site.fn,
            site.base,
            site.scale,
            rms_eps=self.config.rms_norm_eps,
            hc_eps=self.config.hc_eps,
            sinkhorn_iters=self.config.hc_sinkhorn_iters,
            row_class=row_class,
        )

    def _attend(
        self, x: Tensor, rows: Rows, weights: LayerWeights, state: KdaState | DsaState, whole: ModelState
    ) -> Tensor:
        if isinstance(weights.attention, KdaWeights):
            assert isinstance(state, KdaState)
            return kda_attention(x, rows, weights.attention, state, self.config)
        assert isinstance(state, DsaState)
        return dsa_attention(x, rows, weights.attention, state, whole, self.config)

    def _exchange(self, partial: Tensor, dtype: torch.dtype) -> Tensor:
        """The whole sum of all ranks' fp32 parts [T, D], rounded once to the compute dtype."""
        return sum_in_rank_order(self._transport.gather(partial)).to(dtype)


def _stream_mean(streams: Tensor) -> Tensor:
    """Unweighted mean of [T, 4, D] over the streams: added in fp32 in stream order, rounded once."""
    first, second, third, fourth = streams.float().unbind(1)
    return ((first + second + third + fourth) / NUM_STREAMS).to(streams.dtype)
