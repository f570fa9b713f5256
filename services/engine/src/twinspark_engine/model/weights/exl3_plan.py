"""Checks of one EXL3 projection against the catalog, and of the sizes that its tiles and rotations need."""

from collections.abc import Mapping

from twinspark_engine.model.checkpoint_error import CheckpointError, CheckpointReason
from twinspark_engine.model.config import ModelConfig
from twinspark_engine.model.weights.catalog import Entry
from twinspark_engine.model.weights.expect import expect

TILE = 16
ROTATION = 128


def check_exl3_sizes(config: ModelConfig, world_size: int) -> None:
    """SIZE_NOT_DIVISIBLE unless hidden size and each rank's expert width are whole rotation blocks."""
    for name, parts in (("hidden_size", 1), ("moe_intermediate_size", world_size)):
        size = getattr(config, name)
        if size % (ROTATION * parts):
            needed = f"EXL3 experts on {world_size} ranks need a multiple of {ROTATION * parts}"
            message = f"text_config.{name} is {size}: {needed}"
            raise CheckpointError(CheckpointReason.SIZE_NOT_DIVISIBLE, message)


def expect_exl3(catalog: Mapping[str, Entry], prefix: str, shape: tuple[int, int]) -> dict[str, Entry]:
    """The stored tensors of one projection [out, in]: trellis, both scales (or sign words), at most one marker."""
    out_features, in_features = shape
    tiles = (in_features // TILE, out_features // TILE)
    trellis_shapes = tuple((*tiles, TILE * bits) for bits in range(1, 9))
    entries = {f"{prefix}.trellis": expect(catalog, f"{prefix}.trellis", trellis_shapes, ("I16",))}
    for scale, signs, size in (("suh", "su", in_features), ("svh", "sv", out_features)):
        if f"{prefix}.{signs}" in catalog and f"{prefix}.{scale}" not in catalog:
            name = f"{prefix}.{signs}"
            entries[name] = expect(catalog, name, ((size // TILE,),), ("I16",))
        else:
            name = f"{prefix}.{scale}"
            entries[name] = expect(catalog, name, ((size,),), ("F16",))
    markers = [f"{prefix}.{marker}" for marker in ("mcg", "mul1") if f"{prefix}.{marker}" in catalog]
    if len(markers) == 2:
        raise CheckpointError(CheckpointReason.TENSOR_UNEXPECTED, f"{markers[0]} and {markers[1]} are both there")
    return entries | {name: expect(catalog, name, ((), (1,)), ("I32",)) for name in markers}
