"""Start-up check of the ops that keep state, beside `self_check`: KDA in both forms, attention over paged latents.

The engine calls `check_stateful_ops` once at load, with the shapes of one rank; it takes well under a second.
"""

from collections.abc import Callable, Iterable
from functools import partial

import torch
from torch import Tensor

from twinspark_kernels.kda import CELL, KdaInputs, KdaParams, kda_chunk, kda_recurrent
from twinspark_kernels.latent_attention import latent_attention
from twinspark_kernels.latent_attention.chunk_walk import TILE_ROWS, padded, walk_chunk
from twinspark_kernels.latent_attention.reference import KEY_CHUNK
from twinspark_kernels.latent_rows import write_latents
from twinspark_kernels.paged import BLOCK_TOKENS, FIRST_BLOCK, NULL_BLOCK, PagedRows, build_table, map_blocks
from twinspark_kernels.self_check import RowInvarianceError, check_rows

KdaOp = Callable[[KdaInputs, KdaParams, Tensor, Tensor, Tensor], Tensor]

NUM_SLOTS = 7
NUM_QUERIES = 3 * TILE_ROWS + 5
NUM_PAGED = 2 * (BLOCK_TOKENS + 20)
TABLES = ((2, 3, 4), (5, 2, 7))
"""Two choices of the three blocks that NUM_PAGED rows need."""


def check_stateful_ops(kda: Iterable[tuple[int, int, int]], latents: Iterable[int]) -> None:
    """Try KDA shapes (heads, K, V) and latent widths; raise RowInvarianceError naming the first that fails.

    What may be batched at will is the row of the check: slots for the recurrent form, cells for the chunk form, (row,
    head) pairs for the attention.
    """
    generator = torch.Generator().manual_seed(2)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    for heads, K, V in kda:
        params = KdaParams(draw(heads), draw(heads, K), lower_bound=-5.0)
        for op, rows in ((kda_recurrent, 1), (kda_chunk, CELL)):
            check_rows(
                f"{op.__name__} {heads} x {K} x {V}",
                partial(_advance_slots, op=op, params=params),
                draw(NUM_SLOTS, rows, heads, 3 * K + V + 1),
            )
    for width in latents:
        keys = padded(draw(1, KEY_CHUNK, width), KEY_CHUNK)
        check_rows(f"latent_attention {width}", partial(_attend_chunk, keys=keys), draw(NUM_QUERIES, width))
        for dtype in (torch.float32, torch.float8_e4m3fn):
            _check_blocks(width, dtype, draw(NUM_PAGED, width), draw(2, NUM_PAGED // 2, width))


def _check_blocks(width: int, dtype: torch.dtype, rows: Tensor, q: Tensor) -> None:
    """Attend dense and sparse rows [2, n, L] over the same latents in two choices of blocks, among blocks of NaN."""
    first, second = (_attend_blocks(rows, q, dtype, blocks) for blocks in TABLES)
    if not torch.equal(first, second):
        raise RowInvarianceError(
            f"latent_attention {width}, {dtype}: bits follow the blocks that a slot has; replies would depend on who "
            "else is served. Try one thread, or another torch build"
        )


def _attend_blocks(rows: Tensor, q: Tensor, dtype: torch.dtype, blocks: tuple[int, ...]) -> Tensor:
    """[2, n, L]: the last n positions attend all of `rows`, then 16 tokens and the tail."""
    num_blocks, width = FIRST_BLOCK + 2 * len(blocks), rows.shape[1]
    values = torch.full((num_blocks, BLOCK_TOKENS, width), torch.nan).to(dtype)
    values[NULL_BLOCK] = 0
    table = build_table(1, len(blocks))
    map_blocks(table, 0, blocks)
    scales = torch.full((num_blocks, BLOCK_TOKENS), torch.nan) if dtype == torch.float8_e4m3fn else None
    latents = PagedRows(values, table, scales)
    num_rows, n = len(rows), q.shape[1]
    slots, positions = torch.zeros(num_rows, dtype=torch.int64), torch.arange(num_rows)
    write_latents(rows, latents, slots, positions)
    slots, positions = slots[-n:], positions[-n:]
    attend = partial(latent_attention, latents=latents, slots=slots, positions=positions, scale=width**-0.5, pool=4)
    dense = attend(q[0, :, None], selected=None, index_topk=2 * num_rows)
    sparse = attend(q[1, :, None], selected=torch.arange(0, 64, 16).expand(n, -1), index_topk=16)
    return torch.cat((dense, sparse), 1).transpose(0, 1)


def _advance_slots(x: Tensor, op: KdaOp, params: KdaParams) -> Tensor:
    """Outputs and states [N, ...] of N slots, each of them with its rows x [N, rows, H, 3 * K + V + 1]."""
    num_slots, rows, heads, width = x.shape
    K = params.dt_bias.shape[1]
    V = width - 3 * K - 1
    q, k, gate, v, beta = x.flatten(0, 1).split((K, K, K, V, 1), -1)
    state = torch.zeros(num_slots + 1, heads, K, V)
    state[:-1] = k[::rows, :, :, None] * v[::rows, :, None]
    slots = torch.arange(num_slots).repeat_interleave(rows)
    positions = torch.arange(rows).repeat(num_slots)
    out = op(KdaInputs(q, k, v, gate, beta[..., 0]), params, state, slots, positions)
    return torch.cat((out.reshape(num_slots, -1), state[:-1].flatten(1)), 1)


def _attend_chunk(x: Tensor, keys: Tensor) -> Tensor:
    """[rows, L]: rows packed into tiles over one chunk of keys, as the dense form does."""
    rows = len(x)
    tiles = padded(x[None], rows + -rows % TILE_ROWS).view(-1, TILE_ROWS, keys.shape[-1])
    walk = walk_chunk(None, tiles, keys.expand(len(tiles), -1, -1), None)
    return walk.attended().flatten(0, 1)[:rows]
