"""Definition of the routed experts: pairs are sorted by expert, each expert runs its rows, slots are added in order.

Plain experts round as an MLP does: projections and activation to the dtype of x, the down projection stays fp32.
EXL3 experts keep fp32 between the projections and round only the rotated inputs to fp16.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from twinspark_kernels.exl3 import Exl3Weight
from twinspark_kernels.experts.weights import Exl3Experts, PlainExperts
from twinspark_kernels.hadamard import rotate_in, rotate_out
from twinspark_kernels.linear.reference import linear
from twinspark_kernels.row_class import RowClass
from twinspark_kernels.swiglu import swiglu

MAX_TILE_ROWS = 16
"""An expert meets few rows of a forward, so its tiles are lower than a prompt's."""


@dataclass(frozen=True, slots=True)
class SortedPairs:
    """The (row, slot) pairs of a call, sorted by expert. P = T * k pairs; pair p is row p // k, slot p % k."""

    order: torch.Tensor  # [P] int64: pair at each sorted place
    expert_ids: torch.Tensor  # [P] int64: expert at each sorted place
    counts: list[int]  # pairs of each expert, up to the highest one chosen

    def by_expert(self) -> Iterator[tuple[int, slice]]:
        """Every expert that has pairs, with its sorted places."""
        start = 0
        for expert, count in enumerate(self.counts):
            if count:
                yield expert, slice(start, start + count)
                start += count


def grouped_experts(
    x: torch.Tensor,
    expert_ids: torch.Tensor,
    expert_weights: torch.Tensor,
    experts: PlainExperts | Exl3Experts,
    limit: float,
    row_class: RowClass,
) -> torch.Tensor:
    """fp32 [T, D] from x [T, D], expert_ids and expert_weights [T, k]."""
    rows, slots = expert_ids.shape
    tile_rows = min(row_class.tile_rows, MAX_TILE_ROWS)
    pairs = _sort_pairs(expert_ids)
    if len(pairs.counts) > experts.count:
        raise ValueError(f"expert_ids: must all be below {experts.count}, got {len(pairs.counts) - 1}")
    pair_rows = x[pairs.order // slots]
    if isinstance(experts, PlainExperts):
        outputs = _run_plain(pair_rows, pairs, experts, limit, tile_rows)
    else:
        outputs = _run_exl3(pair_rows, pairs, experts, limit, tile_rows)
    by_slot = torch.empty_like(outputs)
    by_slot[pairs.order] = outputs
    weighted = by_slot.view(rows, slots, x.shape[1]) * expert_weights.unsqueeze(2)
    first, *others = weighted.unbind(1)
    for other in others:
        first = first + other
    return first


def _sort_pairs(expert_ids: torch.Tensor) -> SortedPairs:
    flat = expert_ids.flatten()
    in_order, order = torch.sort(flat, stable=True)
    return SortedPairs(order, in_order, torch.bincount(flat).tolist())


def _run_plain(
    x: torch.Tensor, pairs: SortedPairs, experts: PlainExperts, limit: float, tile_rows: int
) -> torch.Tensor:
    """fp32 [P, D] from x [P, D], both in sorted order."""
    outputs = torch.empty(x.shape, dtype=torch.float32, device=x.device)
    for expert, places in pairs.by_expert():
        gate, up = linear(x[places], experts.gate_up[expert], tile_rows, x.dtype).chunk(2, dim=1)
        hidden = swiglu(gate, up, limit)
        outputs[places] = linear(hidden, experts.down[expert], tile_rows, torch.float32)
    return outputs


def _run_exl3(x: torch.Tensor, pairs: SortedPairs, experts: Exl3Experts, limit: float, tile_rows: int) -> torch.Tensor:
    """fp32 [P, D] from x [P, D], both in sorted order. Rotations run over all pairs at once, with their own scales."""
    ids = pairs.expert_ids
    rotated = rotate_in(x.unsqueeze(1), torch.stack((experts.gate.suh[ids], experts.up.suh[ids]), 1)).float()
    products = torch.stack(
        (
            _product_by_expert(rotated[:, 0], pairs, experts.gate, tile_rows),
            _product_by_expert(rotated[:, 1], pairs, experts.up, tile_rows),
        ),
        1,
    )
    gate, up = rotate_out(products, torch.stack((experts.gate.svh[ids], experts.up.svh[ids]), 1)).unbind(1)
    hidden = rotate_in(swiglu(gate, up, limit), experts.down.suh[ids]).float()
    return rotate_out(_product_by_expert(hidden, pairs, experts.down, tile_rows), experts.down.svh[ids])


def _product_by_expert(x: torch.Tensor, pairs: SortedPairs, weight: Exl3Weight, tile_rows: int) -> torch.Tensor:
    """fp32 [P, N]: x [P, K] times the inner matrix of each place's expert."""
    products = x.new_empty((x.shape[0], weight.inner.shape[2]))
    for expert, places in pairs.by_expert():
        products[places] = linear(x[places], weight.inner[expert].t(), tile_rows, torch.float32)
    return products
