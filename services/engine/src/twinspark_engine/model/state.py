"""The state of all slots between forwards: one buffer a kind and layer, allocated once and written in place by the ops.

What is fixed in size lies by slot: every such buffer has one row more than there are slots, and the last is the trash
row, where padding rows (slot -1) write. What grows with the context lies in blocks of 256 positions, and one table for
all layers says which blocks a slot has.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from twinspark_engine.model.config import AttentionKind, ModelConfig
from twinspark_kernels.paged import BLOCK_TOKENS, FIRST_BLOCK, NULL_BLOCK, PagedRows, build_table, map_blocks
from twinspark_kernels.pool_keys import MAX_WINDOW
from twinspark_kernels.scratch import GrowingScratch
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

    latents: PagedRows  # [B, 256, L] compute dtype, or e4m3 with a scale a row
    pools: PagedRows  # [B, 256 / index_kpool, Di] compute dtype: keys of the complete pools
    ring_keys: Tensor  # [S, R, Di] indexer keys of the newest positions, at position % R
    ring_gates: Tensor  # [S, R, Di] their compress gates

    def reset_slot(self, _slot: int) -> None:
        """Nothing: a row is read only after the request has written it."""

    def paged(self) -> tuple[PagedRows, PagedRows]:
        """The families of rows that lie in blocks."""
        return self.latents, self.pools

    def tensors(self) -> tuple[Tensor, ...]:
        """All buffers but the table."""
        return *self.latents.tensors(), *self.pools.tensors(), self.ring_keys, self.ring_gates


@dataclass(frozen=True, slots=True)
class ModelState:
    """Per-layer state of num_slots slots in num_blocks blocks, each slot with a table for `context` positions."""

    layers: tuple[KdaState | DsaState, ...]
    mtp: DsaState | None
    """The MTP layer's own rows; None: the layer does not run."""
    table: Tensor  # int32 [num_slots + 1, blocks of the context]
    num_slots: int
    num_blocks: int
    """Blocks that slots may have; the null and the trash block come on top."""
    context: int
    scratch: GrowingScratch = field(default_factory=GrowingScratch)
    """Scores of the indexer: one layer of one forward uses it at a time."""

    @classmethod
    def allocate(
        cls,
        config: ModelConfig,
        world_size: int,
        num_slots: int,
        context: int,
        dtype: torch.dtype,
        *,
        num_blocks: int | None = None,
        latent_dtype: torch.dtype | None = None,
        with_mtp: bool = False,
    ) -> "ModelState":
        """All buffers, zeroed; under `torch.device("meta")` their sizes alone.

        `context` is rounded up to whole pools; dtype is the compute dtype; latent_dtype float8_e4m3fn or None, for
        dtype. num_blocks None: every slot has a whole context of blocks, mapped at once, for callers that reserve
        nothing. Else no slot has a block until `map_slot`.
        """
        config.check_world_size(world_size)
        context = -(-context // config.index_kpool) * config.index_kpool
        columns = -(-context // BLOCK_TOKENS)
        table = build_table(num_slots, columns)
        blocks = num_slots * columns if num_blocks is None else num_blocks
        sizes = _DsaSizes(num_slots + 1, FIRST_BLOCK + blocks, dtype, latent_dtype or dtype)
        layers = tuple(
            _kda_state(config, world_size, num_slots + 1, dtype)
            if kind is AttentionKind.KDA
            else _dsa_state(config, table, sizes)
            for kind in config.attention_kinds
        )
        mtp = _dsa_state(config, table, sizes) if with_mtp else None
        state = cls(layers, mtp, table, num_slots, blocks, context)
        if num_blocks is None and not table.is_meta:
            table[:-1] = torch.arange(FIRST_BLOCK, FIRST_BLOCK + blocks).view(num_slots, columns)
        return state

    def reset_slot(self, slot: int) -> None:
        """Make a slot ready for a request at position 0. Changes that slot only."""
        for layer in self.layers:
            layer.reset_slot(slot)

    def map_slot(self, slot: int, blocks: Sequence[int]) -> None:
        """Give a slot these blocks, in order of position; none: it has no place to write, and reads zeros."""
        map_blocks(self.table, slot, blocks)

    def tensors(self) -> tuple[Tensor, ...]:
        """All buffers, for accounting and for tests of the step discipline."""
        return *(tensor for layer in self._all_layers() for tensor in layer.tensors()), self.table

    @property
    def nbytes(self) -> int:
        """Bytes of all buffers."""
        return sum(tensor.nbytes for tensor in self.tensors())

    @property
    def kv_nbytes(self) -> int:
        """Bytes of the blocks, the null and the trash block included."""
        return (FIRST_BLOCK + self.num_blocks) * self.block_nbytes

    @property
    def block_nbytes(self) -> int:
        """Bytes of one block over all layers and families of rows."""
        return sum(rows.block_bytes for rows in self.paged())

    @property
    def slot_nbytes(self) -> int:
        """Bytes that one more slot costs, its blocks apart."""
        return (self.nbytes - self.kv_nbytes) // (self.num_slots + 1)

    def paged(self) -> Iterator[PagedRows]:
        """Every family of rows that lies in blocks."""
        for layer in self._all_layers():
            if isinstance(layer, DsaState):
                yield from layer.paged()

    def find_null_write(self) -> int | None:
        """Place, in the order of `paged`, of a family whose null block is no longer zero; None: all are. Reads back."""
        for place, rows in enumerate(self.paged()):
            if any(bool(tensor[NULL_BLOCK].view(torch.uint8).any()) for tensor in rows.tensors()):
                return place
        return None

    def _all_layers(self) -> tuple[KdaState | DsaState, ...]:
        return self.layers if self.mtp is None else (*self.layers, self.mtp)


@dataclass(frozen=True, slots=True)
class _DsaSizes:
    """What all DSA layers have in common."""

    num_rows: int
    num_blocks: int
    dtype: torch.dtype
    latent_dtype: torch.dtype


def ring_rows(pool: int) -> int:
    """Positions that the index ring keeps: the pool before a window and the window at least, in whole pools."""
    return -(-max(MIN_RING_ROWS, pool + MAX_WINDOW) // pool) * pool


def _kda_state(config: ModelConfig, world_size: int, num_rows: int, dtype: torch.dtype) -> KdaState:
    heads, width = config.linear_num_heads // world_size, config.linear_head_dim
    return KdaState(
        recurrent=torch.zeros(num_rows, heads, width, width, dtype=torch.float32),
        conv=torch.zeros(num_rows, TAPS - 1, 3 * heads * width, dtype=dtype),
    )


def _dsa_state(config: ModelConfig, table: Tensor, sizes: _DsaSizes) -> DsaState:
    ring = (sizes.num_rows, ring_rows(config.index_kpool), config.index_head_dim)
    blocks, pools = sizes.num_blocks, BLOCK_TOKENS // config.index_kpool
    is_fp8 = sizes.latent_dtype == torch.float8_e4m3fn
    return DsaState(
        latents=PagedRows(
            torch.zeros(blocks, BLOCK_TOKENS, config.kv_lora_rank, dtype=sizes.latent_dtype),
            table,
            torch.zeros(blocks, BLOCK_TOKENS) if is_fp8 else None,
        ),
        pools=PagedRows(torch.zeros(blocks, pools, config.index_head_dim, dtype=sizes.dtype), table),
        ring_keys=torch.zeros(ring, dtype=sizes.dtype),
        ring_gates=torch.zeros(ring, dtype=sizes.dtype),
    )
