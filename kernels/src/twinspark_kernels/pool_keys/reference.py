"""Definition of pool keys: for pool p of `kpool` tokens and each channel c,

weight_j = softmax over the members j of (gate_j[c] + ape[j, c]), in fp32, rounded to the keys' dtype
pool[c]  = sum over j of weight_j * key_j[c], in fp32, members added in order, rounded once
"""

import torch
from torch import Tensor

from twinspark_kernels.paged import PagedRows
from twinspark_kernels.segments import Segment, split_segments


def update_pools(
    keys: Tensor,
    gates: Tensor,
    ape: Tensor,
    ring_keys: Tensor,
    ring_gates: Tensor,
    pools: PagedRows,
    slots: Tensor,
    positions: Tensor,
) -> None:
    """See the public op. Members are read from the ring before these rows overwrite it."""
    segments = split_segments(slots, positions)
    kpool, ring = len(ape), ring_keys.shape[1]
    completing = [segment for segment in segments if segment.end // kpool > segment.position // kpool]
    if completing:
        member_keys = [_members(keys, ring_keys, segment, kpool) for segment in completing]
        member_gates = [_members(gates, ring_gates, segment, kpool) for segment in completing]
        pooled = pool_members(torch.cat(member_keys), torch.cat(member_gates), ape)
        last = [slice(segment.start + -(segment.position + 1) % kpool, segment.stop, kpool) for segment in completing]
        pools.write(_pick(slots, last), _pick(positions, last) // kpool, pooled)
    if any(segment.length > ring for segment in segments):
        newest = [torch.arange(max(segment.start, segment.stop - ring), segment.stop) for segment in segments]
        rows = torch.cat(newest).to(keys.device)
        keys, gates, slots, positions = keys[rows], gates[rows], slots[rows], positions[rows]
    places = (slots, positions % ring)
    ring_keys.index_put_(places, keys)
    ring_gates.index_put_(places, gates)


def pool_members(keys: Tensor, gates: Tensor, ape: Tensor) -> Tensor:
    """[N, Di] from the members' keys and gates [N, kpool, Di]."""
    logits = gates.float() + ape
    # Not torch's softmax over this axis: with two threads its bits move.
    weights = (logits - logits.amax(1, keepdim=True)).exp_()
    weights /= _sum_members(weights)[:, None]
    return _sum_members(weights.to(keys.dtype).float() * keys.float()).to(keys.dtype)


def _pick(x: Tensor, parts: list[slice]) -> Tensor:
    """The elements of x [T] in these parts, one after another."""
    return x[parts[0]] if len(parts) == 1 else torch.cat([x[part] for part in parts])


def _sum_members(x: Tensor) -> Tensor:
    total = x[:, 0].clone()
    for member in range(1, x.shape[1]):
        total += x[:, member]
    return total


def _members(rows: Tensor, ring: Tensor, segment: Segment, kpool: int) -> Tensor:
    """[pools, kpool, Di]: the members of the pools that this segment completes, the first of them from the ring."""
    taken = segment.end // kpool * kpool - segment.position
    own = rows[segment.start : segment.start + taken]
    from_ring = segment.position % kpool
    if from_ring:
        # The ring is a multiple of kpool long, so a pool never wraps.
        place = (segment.position - from_ring) % ring.shape[1]
        own = torch.cat((ring[segment.slot, place : place + from_ring], own))
    return own.reshape(-1, kpool, rows.shape[-1])
