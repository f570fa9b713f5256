"""Loads EXL3 routed experts: reads this rank's tiles and scales, decodes them once."""

import torch
from torch import Tensor

from twinspark_engine.model.checkpoint_error import CheckpointError, CheckpointReason
from twinspark_engine.model.weights.names import expert_prefix, expert_shape
from twinspark_engine.model.weights.reader import WHOLE, CheckpointReader
from twinspark_engine.model.weights.source import WeightSource
from twinspark_kernels.exl3 import TILE, Codebook, Exl3Weight, codebook_from_markers, decode_tiles, unpack_signs
from twinspark_kernels.experts import Exl3Experts


def load_exl3_experts(source: WeightSource, layer: int) -> Exl3Experts:
    """All routed experts of a layer: gate and up cut by output channels, down by input channels."""
    cut = source.split.part(source.config.moe_intermediate_size)
    return Exl3Experts(
        gate=_load_projection(source, layer, "gate_proj", WHOLE, cut),
        up=_load_projection(source, layer, "up_proj", WHOLE, cut),
        down=_load_projection(source, layer, "down_proj", cut, WHOLE),
    )


def _load_projection(source: WeightSource, layer: int, projection: str, inputs: slice, outputs: slice) -> Exl3Weight:
    """One projection of every expert, stacked: inner fp32 [E, K, N], suh fp16 [E, K], svh fp16 [E, N]."""
    out_features, in_features = expert_shape(source.config, projection)
    rows = len(range(*inputs.indices(in_features)))
    columns = len(range(*outputs.indices(out_features)))
    experts = source.config.n_routed_experts
    inner = torch.empty(experts, rows, columns)
    suh = torch.empty(experts, rows, dtype=torch.float16)
    svh = torch.empty(experts, columns, dtype=torch.float16)
    for expert in range(experts):
        prefix = expert_prefix(layer, expert, projection)
        trellis = source.reader.read_stored(f"{prefix}.trellis", _in_tiles(inputs), _in_tiles(outputs))
        inner[expert] = decode_tiles(trellis, _codebook(source.reader, prefix))
        suh[expert] = _scale(source.reader, f"{prefix}.suh", f"{prefix}.su", inputs)
        svh[expert] = _scale(source.reader, f"{prefix}.svh", f"{prefix}.sv", outputs)
    return Exl3Weight(inner, suh, svh)


def _in_tiles(channels: slice) -> slice:
    return channels if channels == WHOLE else slice(channels.start // TILE, channels.stop // TILE)


def _codebook(reader: CheckpointReader, prefix: str) -> Codebook:
    """The codebook that the marker tensors of a projection choose; TENSOR_VALUE for an unknown multiplier."""
    mcg, mul1 = (
        int(reader.read_stored(name).item()) if reader.holds(name) else None
        for name in (f"{prefix}.mcg", f"{prefix}.mul1")
    )
    try:
        return codebook_from_markers(mcg, mul1)
    except ValueError as error:
        raise CheckpointError(CheckpointReason.TENSOR_VALUE, f"{prefix}: {error}") from error


def _scale(reader: CheckpointReader, name: str, signs: str, channels: slice) -> Tensor:
    """fp16 scales of the channels, from the legacy sign words where a projection has those."""
    if reader.holds(signs):
        return unpack_signs(reader.read_stored(signs))[channels]
    return reader.read_finite(name, channels)
