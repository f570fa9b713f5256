"""LoadPlan: what will be read, checked against the headers before anything is allocated."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from twinspark_engine.model.checkpoint_error import CheckpointError, CheckpointReason
from twinspark_engine.model.config import ModelConfig
from twinspark_engine.model.config_fields import read_json
from twinspark_engine.model.weights.catalog import Entry, build_catalog
from twinspark_engine.model.weights.exl3_plan import check_exl3_sizes, expect_exl3
from twinspark_engine.model.weights.expect import expect_plain
from twinspark_engine.model.weights.headers import StoredTensor, read_stored_tensors
from twinspark_engine.model.weights.names import (
    EXPERT_PROJECTIONS,
    VISION_PREFIX,
    expert_prefix,
    expert_shape,
    global_shapes,
    layer_prefix,
    layer_shapes,
    moe_layers,
    mtp_shapes,
)
from twinspark_engine.model.weights.quantization import Quantization, read_quantization


@dataclass(frozen=True)
class LoadPlan:
    """The text model's parameters, each present with the right shape and a supported dtype."""

    entries: Mapping[str, Entry]
    quantization: Quantization
    has_mtp: bool

    @property
    def num_bytes(self) -> int:
        """Bytes of all planned parameters, whole (a rank reads its part of them)."""
        return sum(entry.num_bytes for entry in self.entries.values())


def build_plan(folder: Path, config: ModelConfig, world_size: int) -> LoadPlan:
    """Checks config, headers and world size against each other; CheckpointError names the first thing that is wrong."""
    config.check_world_size(world_size)
    quantization = read_quantization(read_json(folder / "config.json"))
    if quantization is Quantization.EXL3_EXPERTS:
        check_exl3_sizes(config, world_size)
    return plan_tensors(read_stored_tensors(folder).values(), config, quantization)


def plan_tensors(tensors: Iterable[StoredTensor], config: ModelConfig, quantization: Quantization) -> LoadPlan:
    """The plan for these stored tensors: each parameter there, nothing else beside the vision tower's."""
    catalog = build_catalog(tensors)
    mtp_prefix = layer_prefix(config.num_hidden_layers)
    has_mtp = any(name.startswith(mtp_prefix) for name in catalog)
    expected = _expected(catalog, config, quantization, has_mtp)
    for name in catalog:
        if name not in expected and not name.startswith(VISION_PREFIX):
            message = f"{catalog[name].stored.name} is no parameter of this architecture"
            raise CheckpointError(CheckpointReason.TENSOR_UNEXPECTED, message)
    return LoadPlan(expected, quantization, has_mtp)


def _expected(
    catalog: Mapping[str, Entry], config: ModelConfig, quantization: Quantization, has_mtp: bool
) -> dict[str, Entry]:
    shapes = dict(global_shapes(config))
    for layer in range(config.num_hidden_layers):
        shapes |= layer_shapes(config, layer)
    if has_mtp:
        shapes |= mtp_shapes(config)
    fp8 = quantization is Quantization.BLOCK_FP8
    expected: dict[str, Entry] = {}
    for name, shape in shapes.items():
        expected |= expect_plain(catalog, name, shape, fp8)
    for layer in moe_layers(config, has_mtp):
        for expert in range(config.n_routed_experts):
            for projection in EXPERT_PROJECTIONS:
                prefix, shape = expert_prefix(layer, expert, projection), expert_shape(config, projection)
                if quantization is Quantization.EXL3_EXPERTS:
                    expected |= expect_exl3(catalog, prefix, shape)
                else:
                    expected |= expect_plain(catalog, f"{prefix}.weight", shape, fp8)
    return expected
