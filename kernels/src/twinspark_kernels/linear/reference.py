"""Definition of the row-invariant products: fixed tiles of rows, each computed whole, in fp32.

A BLAS picks its code by the number of rows and, for few outputs, by the alignment of each row, so a plain
product gives a row other bits in another batch. Here every call has the same number of rows, and every row of
a tile starts on a 64-byte boundary: the inner width is padded with zeros to a multiple of 16 (no width of a
real checkpoint needs it) and an unaligned input is copied. Batches with an untransposed weight need the same
of the rows of their result.
"""

import torch
from torch.nn.functional import pad

ALIGNMENT_BYTES = 64
ALIGNMENT_VALUES = ALIGNMENT_BYTES // 4


def linear(x: torch.Tensor, weight: torch.Tensor, tile_rows: int, out_dtype: torch.dtype) -> torch.Tensor:
    """[T, O] from x [T, I] and weight [O, I], in tiles of `tile_rows`."""
    rows = x.shape[0]
    matrix = _matrix(weight)
    tiles = _tiles(x, -rows % tile_rows)
    padded_rows = tiles.shape[0]
    if padded_rows == tile_rows:
        out = torch.mm(tiles, matrix)
    else:
        out = tiles.new_empty(padded_rows, weight.shape[0])
        for tile, result in zip(torch.split(tiles, tile_rows), torch.split(out, tile_rows), strict=True):
            torch.mm(tile, matrix, out=result)
    if padded_rows != rows:
        out = out[:rows]
    return out if out_dtype == torch.float32 else out.to(out_dtype)


def head_linear(x: torch.Tensor, weight: torch.Tensor, tile_rows: int, out_dtype: torch.dtype) -> torch.Tensor:
    """[T, H, O] from x [T, H, I] and weight [H, I, O], in tiles of `tile_rows` rows of all heads."""
    rows, _, width = x.shape
    outputs = weight.shape[2]
    padding, out_padding = -width % ALIGNMENT_VALUES, -outputs % ALIGNMENT_VALUES
    matrices = weight.float()
    if padding or out_padding:
        matrices = pad(matrices, (0, out_padding, 0, padding))
    by_head = pad(x.float().transpose(0, 1), (0, padding, 0, -rows % tile_rows)).contiguous()
    products = [torch.bmm(tile, matrices) for tile in torch.split(by_head, tile_rows, 1)]
    out = products[0] if len(products) == 1 else torch.cat(products, 1)
    return out[:, :rows, :outputs].transpose(0, 1).to(out_dtype).contiguous()


def _matrix(weight: torch.Tensor) -> torch.Tensor:
    """fp32 [I rounded up, O] for weight [O, I]; a view of it when it is fp32 and of a usual shape."""
    outputs, width = weight.shape
    padding = -width % ALIGNMENT_VALUES
    if padding:
        weight = pad(weight, (0, padding))
    elif outputs % ALIGNMENT_VALUES:
        weight = weight.contiguous()  # only a transposed weight is copied: its results would start off alignment
    return weight.float().t()


def _tiles(x: torch.Tensor, row_padding: int) -> torch.Tensor:
    """fp32, contiguous, aligned [T + row_padding, I rounded up], beginning with `x`: `x` itself where that suffices."""
    values = x.float()
    padding = -x.shape[1] % ALIGNMENT_VALUES
    if padding or row_padding:
        return pad(values, (0, padding, 0, row_padding))
    values = values.contiguous()
    return values if values.data_ptr() % ALIGNMENT_BYTES == 0 else values.clone()
