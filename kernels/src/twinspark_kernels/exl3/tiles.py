"""The bit stream of EXL3's 16 x 16 tiles: packed words to states and back, stream order to rows and columns.

A tile of b bits is 16 * b int16, read as 8 * b little-endian 32-bit words, most significant bit first. Weight t owns
the stream bits [t * b, (t + 1) * b); its state is the 16 bits that end with them, modulo the tile (tail-biting).
"""

import functools

import torch

TILE = 16
TILE_WEIGHTS = TILE * TILE
_WORD_MASK = 0xFFFFFFFF


def tile_bits(trellis: torch.Tensor) -> int:
    """Bits a weight of a packed tensor [..., 16 * b]; ValueError unless b is 1 to 8."""
    bits, rest = divmod(trellis.shape[-1], TILE)
    if rest or not 1 <= bits <= 8:
        raise ValueError(f"the last axis of a trellis is {trellis.shape[-1]}: 16 times 1 to 8 bits is needed")
    return bits


def unpack_states(trellis: torch.Tensor) -> torch.Tensor:
    """int16 [..., 16 * b] -> int64 [..., 256]: the state of every weight, in stream order."""
    words = trellis.contiguous().view(torch.int32).to(torch.int64) & _WORD_MASK
    first, second, shift = _windows(tile_bits(trellis))
    pair = (words[..., first] << 32) | words[..., second]
    return (pair >> shift) & 0xFFFF


def pack_states(states: torch.Tensor, bits: int) -> torch.Tensor:
    """int64 [..., 256] -> int16 [..., 16 * b]: the low b bits of every state, in stream order."""
    places = torch.arange(bits - 1, -1, -1)
    stream = (states[..., None] >> places) & 1
    weights = torch.arange(31, -1, -1)
    words = (stream.reshape(*states.shape[:-1], 8 * bits, 32) << weights).sum(-1)
    return words.to(torch.uint32).view(torch.int16)


def from_stream_order(values: torch.Tensor) -> torch.Tensor:
    """[K/16, N/16, 256] in stream order -> [K, N], contiguous."""
    row_tiles, column_tiles, _ = values.shape
    tiles = values[..., _stream_index()].view(row_tiles, column_tiles, TILE, TILE)
    return tiles.transpose(1, 2).reshape(row_tiles * TILE, column_tiles * TILE)


def to_stream_order(matrix: torch.Tensor) -> torch.Tensor:
    """[K, N] -> [K/16, N/16, 256] in stream order."""
    rows, columns = matrix.shape
    tiles = matrix.view(rows // TILE, TILE, columns // TILE, TILE).transpose(1, 2)
    flat = tiles.reshape(rows // TILE, columns // TILE, TILE_WEIGHTS)
    return flat[..., _stream_index().argsort()]


@functools.cache
def _windows(bits: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """For each weight [256]: the word with the head of its state, the next word, the right shift of the pair."""
    start = (torch.arange(TILE_WEIGHTS) + 1) * bits - 16
    start = start % (TILE_WEIGHTS * bits)
    first = start // 32
    return first, (first + 1) % (8 * bits), 48 - start % 32


@functools.cache
def _stream_index() -> torch.Tensor:
    """int64 [256]: the stream position of row-major position 16 * row + column (tensor-core fragment order)."""
    stream = torch.arange(TILE_WEIGHTS)
    lane, place = stream // 8, stream % 8
    row = 2 * (lane % 4) + place % 2 + 8 * ((place // 2) % 2)
    column = lane // 4 + 8 * (place // 4)
    index = torch.empty(TILE_WEIGHTS, dtype=torch.int64)
    index[row * TILE + column] = stream
    return index
