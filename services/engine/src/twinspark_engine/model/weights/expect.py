"""Checks of one parameter against the catalog: there, of the right shape, of a supported dtype."""

from collections.abc import Mapping

from twinspark_engine.model.checkpoint_error import CheckpointError, CheckpointReason
from twinspark_engine.model.weights.catalog import Entry
from twinspark_engine.model.weights.quantization import FP8_BLOCK

PLAIN_DTYPES = ("BF16", "F16", "F32")
FP8_DTYPE = "F8_E4M3"
SCALE_SUFFIX = "_scale_inv"


def expect(
    catalog: Mapping[str, Entry], name: str, shapes: tuple[tuple[int, ...], ...], dtypes: tuple[str, ...]
) -> Entry:
    """The entry of that name; TENSOR_MISSING, TENSOR_SHAPE or TENSOR_DTYPE."""
    entry = catalog.get(name)
    if entry is None:
        raise CheckpointError(CheckpointReason.TENSOR_MISSING, f"{name} is missing")
    if entry.shape not in shapes:
        message = f"{name} has shape {list(entry.shape)}: {' or '.join(str(list(shape)) for shape in shapes)} is needed"
        raise CheckpointError(CheckpointReason.TENSOR_SHAPE, message)
    if entry.stored.dtype not in dtypes:
        message = f"{name} has dtype {entry.stored.dtype}: {' or '.join(dtypes)} is needed"
        raise CheckpointError(CheckpointReason.TENSOR_DTYPE, message)
    return entry


def expect_plain(catalog: Mapping[str, Entry], name: str, shape: tuple[int, ...], fp8: bool) -> dict[str, Entry]:
    """A plain parameter, or in a block-FP8 folder a matrix of e4m3 values with its fp32 scales."""
    shapes = (shape, (shape[0], shape[2])) if len(shape) == 3 else (shape,)  # convolutions: [C, 1, 4] or [C, 4]
    may_be_fp8 = fp8 and len(shape) == 2 and name.endswith(".weight")
    entry = expect(catalog, name, shapes, (*PLAIN_DTYPES, FP8_DTYPE) if may_be_fp8 else PLAIN_DTYPES)
    if entry.stored.dtype != FP8_DTYPE:
        return {name: entry}
    rows, columns = shape
    grid = (-(-rows // FP8_BLOCK), -(-columns // FP8_BLOCK))
    scale_name = name + SCALE_SUFFIX
    return {name: entry, scale_name: expect(catalog, scale_name, (grid,), ("F32",))}
