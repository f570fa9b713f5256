"""Definition of the row-invariant products: fixed tiles of rows, each computed whole, in fp32.

A BLAS picks its code by the number of rows and, for few outputs, by the alignment of each row, so a plain
product gives a row other bits in another batch. Here every call has the same number of rows, and every row of
a tile starts on a 64-byte boundary: the inner width is padded with zeros to a multiple of 16 (no width of a
real checkpoint needs it) and an unaligned input is copied. Batches with an untransposed weight need the same
of the rows of their result.
"""

import torch

ALIGNMENT_BYTES = 64
ALIGNMENT_VALUES = ALIGNMENT_BYTES // 4


def linear(x: torch.Tensor, weight: torch.Tensor, tile_rows: int, out_dtype: torch.dtype) -> torch.Tensor:
    """[T, O] from x [T, I] and weight [O, I], in tiles of `tile_rows`."""
    rows, outputs = x.shape[0], weight.shape[0]
    matrix = _matrix(weight)
    tiles = _padded(x, _round_up(rows, tile_rows), matrix.shape[0])
    if len(tiles) == tile_rows:
        out = torch.mm(tiles, matrix)
    else:
        out = tiles.new_empty(len(tiles), outputs)
        for tile, result in zip(torch.split(tiles, tile_rows), torch.split(out, tile_rows), strict=True):
            torch.mm(tile, matrix, out=result)
    return out[:rows].to(out_dtype)


def head_linear(x: torch.Tensor, weight: torch.Tensor, tile_rows: int, out_dtype: torch.dtype) -> torch.Tensor:
    """[T, H, O] from x [T, H, I] and weight [H, I, O], in tiles of `tile_rows` rows of all heads."""
    rows, heads, width = x.shape
    matrices = weight.float()
    outputs = weight.shape[2]
    padding, out_padding = -width % ALIGNMENT_VALUES, -outputs % ALIGNMENT_VALUES
    if padding or out_padding:
        matrices = torch.nn.functional.pad(matrices, (0, out_padding, 0, padding))
    out = x.new_empty((rows, heads, outputs), dtype=out_dtype)
    for start in range(0, rows, tile_rows):
        count = min(tile_rows, rows - start)
        tile = torch.zeros((heads, tile_rows, width + padding), dtype=torch.float32, device=x.device)
        tile[:, :count, :width] = x[start : start + count].transpose(0, 1)
        out[start : start + count] = torch.bmm(tile, matrices)[:, :count, :outputs].transpose(0, 1)
    return out


def _matrix(weight: torch.Tensor) -> torch.Tensor:
    """fp32 [I rounded up, O] for weight [O, I]; a view of it when it is fp32 and of a usual shape."""
    outputs, width = weight.shape
    padding = -width % ALIGNMENT_VALUES
    if padding:
        weight = torch.nn.functional.pad(weight, (0, padding))
    elif outputs % ALIGNMENT_VALUES:
        weight = weight.contiguous()  # only a transposed weight is copied: its results would start off alignment
    return weight.float().t()


def _padded(x: torch.Tensor, rows: int, width: int) -> torch.Tensor:
    """fp32, contiguous, aligned [rows, width] that begins with `x`; `x` itself when it already is that."""
    if x.shape == (rows, width):
        y = x.float().contiguous()
        return y if y.data_ptr() % ALIGNMENT_BYTES == 0 else y.clone()
    y = torch.zeros((rows, width), dtype=torch.float32, device=x.device)
    y[: x.shape[0], : x.shape[1]] = x
    return y


def _round_up(count: int, multiple: int) -> int:
    return -(-count // multiple) * multiple
