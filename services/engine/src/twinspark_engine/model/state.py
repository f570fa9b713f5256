"""The state of all slots between forwards: one buffer a kind and layer, allocated once and written in place by the ops.

Every buffer has one row more than there are slots: the last is the trash row, where padding rows (slot -1) write.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from twinspark_engine.model.config import AttentionKind, ModelConfig
from twinspark_kernels.pool_keys import MAX_WINDOW
from twinspark_kernels.short_conv import TAPS

MIN_RING_ROWS = 64


@dataclass(frozen=True, slots=True)
class KdaState:
    """What one KDA layer keeps of each slot, for this rank's heads. S = slots + 1."""

    recurrent: Tensor  # [S, H, K, V] fp32
    conv: Tensor  # [S, TAPS - 1, 3*H*K] newest rows of q|k|v before the convolution, compute dtype

    def reset_slot(self, slot: int) -> None:
        """Zero what a request that starts at position 0 reads."""
        self.recurrent[slot].zero_()
        self.conv[slot].zero_()

    def tensors(self) -> tuple[Tensor, ...]:
        """All buffers."""
        return self.recurrent, self.conv


@dataclass(frozen=True, slots=True)
class DsaState:
    """What one DSA layer keeps of each slot, the same on every rank. Rows are addressed by position."""

    latents: Tensor  # [S, C, L] compute dtype
    ring_keys: Tensor  # [S, R, Di] indexer keys of the newest positions, at position % R
    ring_gates: Tensor  # [S, R, Di] their compress gates
    pools: Tensor  # [S, P, Di] keys of the complete pools

    def reset_slot(self, _slot: int) -> None:
        """Nothing: a row is read only after the request has written it."""

    def tensors(self) -> tuple[Tensor, ...]:
        """All buffers."""
        return self.latents, self.ring_keys, self.ring_gates, self.pools


@dataclass(frozen=True, slots=True)
class ModelState:
    """Per-layer state of num_slots slots, each with room for `context` positions."""

    layers: tuple[KdaState | DsaState, ...]
    num_slots: int
    context: int

    @classmethod
    def allocate(
        cls, config: ModelConfig, world_size: int, num_slots: int, context: int, dtype: torch.dtype
    ) -> "ModelState":
        """All buffers, zeroed. `context` is rounded up to whole pools; dtype is the compute dtype."""
        config.check_world_size(world_size)
        pools = -(-context // config.index_kpool)
        context = pools * config.index_kpool
        layers = tuple(
            _kda_state(config, world_size, num_slots + 1, dtype)
            if kind is AttentionKind.KDA
            else _dsa_state(config, num_slots + 1, pools, dtype)
            for kind in config.attention_kinds
        )
        return cls(layers, num_slots, context)

    def reset_slot(self, slot: int) -> None:
        """Make a slot ready for a request at position 0. Changes that slot only."""
        for layer in self.layers:
            layer.reset_slot(slot)

    def tensors(self) -> tuple[Tensor, ...]:
        """All buffers, for accounting and for tests of the step discipline."""
        return tuple(tensor for layer in self.layers for tensor in layer.tensors())

    @property
    def nbytes(self) -> int:
        """Bytes of all buffers."""
        return sum(tensor.nbytes for tensor in self.tensors())

    @property
    def kv_nbytes(self) -> int:
        """Bytes of the buffers that grow with the context: those of the DSA layers."""
        return sum(t.nbytes for layer in self.layers if isinstance(layer, DsaState) for t in layer.tensors())


def ring_rows(pool: int) -> int:
    """Positions that the index ring keeps: the pool before a window and the window at least, in whole pools."""
    return -(-max(MIN_RING_ROWS, pool + MAX_WINDOW) // pool) * pool


def _kda_state(config: ModelConfig, world_size: int, num_rows: int, dtype: torch.dtype) -> KdaState:
    heads, width = config.linear_num_heads // world_size, config.linear_head_dim
    return KdaState(
        recurrent=torch.zeros(num_rows, heads, width, width, dtype=torch.float32),
        conv=torch.zeros(num_rows, TAPS - 1, 3 * heads * width, dtype=dtype),
    )


def _dsa_state(config: ModelConfig, num_rows: int, pools: int, dtype: torch.dtype) -> DsaState:
    ring = (num_rows, ring_rows(config.index_kpool), config.index_head_dim)
    return DsaState(
        latents=torch.zeros(num_rows, pools * config.index_kpool, config.kv_lora_rank, dtype=dtype),
        ring_keys=torch.zeros(ring, dtype=dtype),
        ring_gates=torch.zeros(ring, dtype=dtype),
        pools=torch.zeros(num_rows, pools, config.index_head_dim, dtype=dtype),
    )
