"""Kimi Delta Attention: a gated delta rule over a state of [K, V] a head, in two forms for two classes of rows.

`kda_chunk` computes prompt rows in absolute cells of 64 tokens, `kda_recurrent` decode rows one after the other. Both
normalise q and k, bound the gate and squash beta inside. CPU tensors run the reference. CONTRACT.md, where it differs
from the common answers:
1. Inputs: packed segments (`segments.py`), whose positions are checked; the state is fp32.
2. Outputs: rows of slot -1 are zeros.
3. Arithmetic: fp32, beta rounded to bf16 where q is bf16 (README.md); 3e-6 of the recurrence in float64.
4. Row invariance: a cell's and a window row's bits depend on its own rows, those before it and the state alone.
6. Side effects: `state` of each slot that has rows moves on to its last row, in place, when all is computed; no other
   slot is touched. Workspace: the chunk form keeps some twenty fp32 copies of q, counted in whole cells, and three
   64 x 64 matrices a cell and head; the recurrent form two copies of the states that it moves.
7. Graph capture: the reference reads slots and positions on the host, and takes as many steps as the longest segment
   has cells or rows.
8. Limits: lower_bound in [-10, 0); K * V a multiple of 16; one segment a slot and forward.
"""

import torch
from torch import Tensor

from twinspark_kernels.kda import chunk_reference, reference
from twinspark_kernels.kda.chunk_reference import CELL
from twinspark_kernels.kda.inputs import KdaInputs, KdaParams
from twinspark_kernels.segments import check_rows, check_shape

__all__ = ["CELL", "MIN_LOWER_BOUND", "KdaInputs", "KdaParams", "kda_chunk", "kda_recurrent"]

# Inside a sub-block of 8 tokens the chunk form scales keys by up to exp(8 * -lower_bound); fp32 ends at exp(88).
MIN_LOWER_BOUND = -10.0
# Matrices of a batch start at multiples of 64 bytes, where a CPU's matrix product keeps its bits.
STATE_MULTIPLE = 16


def kda_chunk(inputs: KdaInputs, params: KdaParams, state: Tensor, slots: Tensor, positions: Tensor) -> Tensor:
    """Prompt rows: o [T, H, V] in the dtype of q; moves `state` on to the last row of each segment.

    state fp32 [S, H, K, V]; slots, positions int64 [T]. A segment starts at a multiple of 64; one that ends inside of a
    cell is its prompt's last. Rows of slot -1 give zeros and touch no state. Raises TypeError and ValueError for wrong
    dtypes, shapes and positions, and for a lower bound outside [-10, 0).
    """
    _check(inputs, params, state, slots, positions)
    return chunk_reference.kda_chunk(inputs, params, state, slots, positions)


def kda_recurrent(inputs: KdaInputs, params: KdaParams, state: Tensor, slots: Tensor, positions: Tensor) -> Tensor:
    """Decode rows: o [T, H, V] in the dtype of q; moves `state` on to the last row of each window.

    Arguments and errors as in `kda_chunk`; a window may start anywhere.
    """
    _check(inputs, params, state, slots, positions)
    return reference.kda_recurrent(inputs, params, state, slots, positions)


def _check(inputs: KdaInputs, params: KdaParams, state: Tensor, slots: Tensor, positions: Tensor) -> None:
    check_shape("q", inputs.q, (None, None, None))
    rows, heads, key_dim = inputs.q.shape
    check_shape("k", inputs.k, (rows, heads, key_dim))
    check_shape("v", inputs.v, (rows, heads, None))
    check_shape("gate", inputs.gate, (rows, heads, key_dim))
    check_shape("beta", inputs.beta, (rows, heads))
    check_shape("a_log", params.a_log, (heads,))
    check_shape("dt_bias", params.dt_bias, (heads, key_dim))
    check_shape("state", state, (None, heads, key_dim, inputs.v.shape[-1]))
    if state.dtype != torch.float32:
        raise TypeError(f"state: must be float32, got {state.dtype}")
    if key_dim * state.shape[-1] % STATE_MULTIPLE:
        raise ValueError(f"state: K * V must be a multiple of {STATE_MULTIPLE}, got {key_dim} * {state.shape[-1]}")
    if not MIN_LOWER_BOUND <= params.lower_bound < 0:
        raise ValueError(f"lower_bound: must be in [{MIN_LOWER_BOUND}, 0), got {params.lower_bound}")
    check_rows(rows, slots, positions)
