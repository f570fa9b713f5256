"""Tail-biting Viterbi search over EXL3's trellis: the states whose codebook values lie nearest to given weights.

A node is what the next state inherits: the low 16 - b bits of a state. State s comes from node s >> b and leads to
node s & (2^(16 - b) - 1), so 2^b states lead to each node and they differ in their top b bits.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from twinspark_kernels.exl3 import TILE, Codebook, codebook_table

STATE_BITS = 16
TILE_WEIGHTS = TILE * TILE
HALF = TILE_WEIGHTS // 2
CPU_BATCH = 8  # 2 MB of candidates: they stay in a core's cache
DEVICE_BATCH = 512
COST_BYTES = 4 << 30  # of a batch: every node's cost after every weight

Progress = Callable[[int, int], None]


def encode_tiles(tiles: Tensor, bits: int, codebook: Codebook, progress: Progress | None = None) -> Tensor:
    """int64 [n, 256] states, on the tiles' device, of fp32 tiles [n, 256] in stream order; bits 1 to 8.

    Least squares up to the choice of the node in which a tile starts and ends: a first search, from the tile's middle
    around its end, finds a good node; a second one is held to it at both ends. progress(done, all) counts tiles.
    """
    if tiles.dim() != 2 or tiles.shape[1] != TILE_WEIGHTS or tiles.dtype != torch.float32:
        raise ValueError(f"tiles are fp32 [n, {TILE_WEIGHTS}], got {tiles.dtype} {tuple(tiles.shape)}")
    if not 1 <= bits <= 8:
        raise ValueError(f"{bits} bits: 1 to 8 are possible")
    states = torch.empty(tiles.shape, dtype=torch.int64, device=tiles.device)
    batch = _batch_size(tiles.device, bits)
    for start in range(0, len(tiles), batch):
        part = tiles[start : start + batch]
        states[start : start + batch] = _Search(part, bits, codebook).run()
        if progress is not None:
            progress(start + len(part), len(tiles))
    return states


def _batch_size(device: torch.device, bits: int) -> int:
    wanted = CPU_BATCH if device.type == "cpu" else DEVICE_BATCH
    return min(wanted, COST_BYTES // (4 * TILE_WEIGHTS << (STATE_BITS - bits)))


class _Search:
    """The searches of one batch of B tiles.

    The forward keeps the cost of every node after every weight and no back-pointers: a minimum without its place is
    several times faster to find, and the way back asks for the place at one node a weight only.
    """

    def __init__(self, tiles: Tensor, bits: int, codebook: Codebook) -> None:
        count, device = len(tiles), tiles.device
        self._bits, self._nodes = bits, 1 << (STATE_BITS - bits)
        self._targets = tiles.t().contiguous()  # [256, B]
        self._table = codebook_table(codebook).to(device).float()
        self._tops = torch.arange(1 << bits, device=device) << (STATE_BITS - bits)
        self._candidates = torch.empty(count, self._nodes, 1 << bits, device=device)  # by state: node of origin, own
        # Row i: before the i-th step of a search; node of origin.
        self._costs = torch.empty(TILE_WEIGHTS + 1, count, self._nodes, device=device)

    def run(self) -> Tensor:
        """States int64 [B, 256]."""
        around = [*range(HALF, TILE_WEIGHTS), *range(HALF)]
        self._costs[0].zero_()
        self._forward(around)
        border = self._backward(around, self._costs[-1].argmin(1), HALF)[-1] >> self._bits
        straight = range(TILE_WEIGHTS)
        self._costs[0].fill_(torch.inf).scatter_(1, border[:, None], 0.0)
        self._forward(straight)
        states = self._backward(straight, border, 0)
        return torch.stack(states[::-1], dim=1)

    def _forward(self, order: Sequence[int]) -> None:
        """Takes in the weights in this order: the least cost of every node after each."""
        values = self._table.view(self._nodes, -1)
        by_end = self._candidates.view(len(self._candidates), -1, self._nodes)
        for step, weight in enumerate(order):
            torch.sub(values, self._targets[weight, :, None, None], out=self._candidates)
            torch.addcmul(self._costs[step, :, :, None], self._candidates, self._candidates, out=self._candidates)
            torch.amin(by_end, dim=1, out=self._costs[step + 1])

    def _backward(self, order: Sequence[int], node: Tensor, first: int) -> list[Tensor]:
        """States int64 [B] of the weights of steps 255 to `first`, on the best way to a node [B] of each tile."""
        states = []
        for step in range(TILE_WEIGHTS - 1, first - 1, -1):
            candidates = self._tops | node[:, None]
            distances = self._table[candidates] - self._targets[order[step], :, None]
            costs = self._costs[step].gather(1, candidates >> self._bits).addcmul_(distances, distances)
            state = candidates.gather(1, costs.argmin(1, keepdim=True))[:, 0]
            states.append(state)
            node = state >> self._bits
        return states
