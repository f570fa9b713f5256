"""Definition of latent attention, dense and sparse, as a walk over chunks of 512 keys.

For a row with query q and keys c_0, c_1, ... in ascending position: o = sum over t of p_t c_t, p = softmax over t of
scale * q . c_t, in fp32. `chunk_walk.py` says how chunks are merged.
"""

import torch
from torch import Tensor

from twinspark_kernels.latent_attention.chunk_walk import (
    ALIGNED_VALUES,
    TILE_ROWS,
    ChunkWalk,
    aligned,
    padded,
    walk_chunk,
)
from twinspark_kernels.paged import PagedRows
from twinspark_kernels.segments import split_segments

KEY_CHUNK = 512
# Rows of one batched product. They bound memory and change no bit.
DENSE_PAIRS = 8192
SPARSE_ROWS = 8


def dense_limit(pool: int, index_topk: int) -> int:
    """First position whose row is sparse: before it, the best pools and the tail are all there is."""
    return index_topk + pool - 1


def latent_attention(
    q: Tensor,
    latents: PagedRows,
    slots: Tensor,
    positions: Tensor,
    selected: Tensor | None,
    *,
    scale: float,
    pool: int,
    index_topk: int,
) -> Tensor:
    """[T, H, L]; see the public op."""
    out = torch.zeros_like(q)
    dense_block = max(1, DENSE_PAIRS // q.shape[1])
    limit = dense_limit(pool, index_topk)
    sparse: list[int] = []
    for segment in split_segments(slots, positions):
        start, position = segment.start, segment.position
        while position < min(segment.end, limit):
            stop = start + min(segment.end, _block_end(position, dense_block, limit)) - position
            out[start:stop] = _attend_dense(q[start:stop], latents, segment.slot, position, scale)
            start, position = stop, position + stop - start
        sparse.extend(range(start, segment.stop))
    if sparse and selected is None:
        raise ValueError(f"selected: the row at position {int(positions[sparse[-1]])} needs pools")
    for first in range(0, len(sparse), SPARSE_ROWS):
        block = sparse[first : first + SPARSE_ROWS]
        together = block[-1] - block[0] + 1 == len(block)
        rows = slice(block[0], block[-1] + 1) if together else torch.tensor(block, device=q.device)
        assert selected is not None
        tokens = _attended_tokens(selected[rows], positions[rows], pool)
        out[rows] = _attend_sparse(q[rows], latents, slots[rows], tokens, scale)
    return out


def _block_end(position: int, most_rows: int, limit: int) -> int:
    """End of the block of dense rows that begins at `position`: all of its rows walk the same chunks."""
    return min(position + most_rows, (position // KEY_CHUNK + 1) * KEY_CHUNK, limit)


def _attend_dense(q: Tensor, latents: PagedRows, slot: int, position: int, scale: float) -> Tensor:
    """[n, H, L] for rows of one slot at `position` on over all keys up to their own; (row, head) pairs in tiles."""
    rows, heads, width = q.shape
    pairs = aligned(rows * heads, TILE_ROWS)
    queries = padded(q.float().mul(scale).reshape(1, rows * heads, width), pairs).view(-1, TILE_ROWS, aligned(width))
    end = position + rows
    walk: ChunkWalk | None = None
    for first in range(0, end, KEY_CHUNK):
        keys = latents.read_chunk(slot, first, KEY_CHUNK)
        keys[end - first :] = 0  # behind the newest row anything may lie
        chunk = padded(keys[None], KEY_CHUNK).expand(len(queries), -1, -1)
        hidden = None
        if first + KEY_CHUNK > position:
            own = (position + torch.arange(pairs, device=q.device) // heads).view(-1, TILE_ROWS, 1)
            hidden = torch.arange(first, first + KEY_CHUNK, device=q.device) > own
        walk = walk_chunk(walk, queries, chunk, hidden)
    assert walk is not None
    return walk.attended().view(pairs, -1)[: rows * heads, :width].reshape(rows, heads, width).to(q.dtype)


def _attended_tokens(selected: Tensor, positions: Tensor, pool: int) -> Tensor:
    """int64 [n, index_topk + pool - 1]: positions of the tokens of the pools, then of the tail, then -1."""
    members = torch.arange(pool, device=selected.device)
    pools = selected[..., None]
    tokens = (pools * pool + members).where(pools >= 0, -1).flatten(1)
    newest = positions[:, None]
    tail = newest - (newest + 1) % pool + 1 + members[:-1]
    return torch.cat((tokens, tail.where(tail <= newest, -1)), 1)


def _attend_sparse(q: Tensor, latents: PagedRows, slots: Tensor, tokens: Tensor, scale: float) -> Tensor:
    """[n, H, L] over the listed keys of each row, of any slots; a row's heads fill tiles of their own."""
    rows, heads, width = q.shape
    queries = padded(q.float().mul(scale), aligned(heads, TILE_ROWS))
    listed = aligned(tokens.shape[1], ALIGNED_VALUES)
    tokens = torch.nn.functional.pad(tokens, (0, listed - tokens.shape[1]), value=-1)
    absent = (tokens < 0)[:, None]
    # An absent key is read at position 0, which is always written, and weighs 0.
    places = latents.places(slots[:, None], tokens.clamp(min=0))
    gathered = padded(latents.read(places.flatten()).view(rows, listed, width), listed)
    walk: ChunkWalk | None = None
    for first in range(0, listed, KEY_CHUNK):
        chunk = slice(first, first + KEY_CHUNK)
        walk = walk_chunk(walk, queries, gathered[:, chunk], absent[:, :, chunk])
    assert walk is not None
    return walk.attended()[:, :heads, :width].to(q.dtype)
