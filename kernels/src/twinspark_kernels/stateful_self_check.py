"""Start-up check of the ops that keep state, beside `self_check`: KDA in both forms, and the attention's key chunks.

The engine calls `check_stateful_ops` once at load, with the shapes of one rank; it takes well under a second.
"""

from collections.abc import Callable, Iterable
from functools import partial

import torch
from torch import Tensor

from twinspark_kernels.kda import CELL, KdaInputs, KdaParams, kda_chunk, kda_recurrent
from twinspark_kernels.latent_attention.chunk_walk import TILE_ROWS, padded, walk_chunk
from twinspark_kernels.latent_attention.reference import KEY_CHUNK
from twinspark_kernels.self_check import check_rows

KdaOp = Callable[[KdaInputs, KdaParams, Tensor, Tensor, Tensor], Tensor]

NUM_SLOTS = 7
NUM_QUERIES = 3 * TILE_ROWS + 5


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
