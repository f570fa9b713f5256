"""The parameters under their published names, and how training starts them.

Routed experts are stacked: `...mlp.experts.gate_up` [experts, 2 width, hidden] (gate rows first) and
`...mlp.experts.down` [experts, hidden, width]. Master copies are fp32.
"""

import math

import torch
from torch import Tensor, nn

from twinspark_engine.model.config import ModelConfig
from twinspark_engine.model.weights.names import (
    expert_shape,
    global_shapes,
    layer_prefix,
    layer_shapes,
    moe_layers,
    mtp_shapes,
)

STANDARD_DEVIATION = 0.02
CONV_BOUND = 0.5  # uniform in +-1/sqrt(4 taps)
DECAY_RATES = (1e-3, 0.5)  # forgetting a token at the start: from remembering a thousand to about two
BIAS_SUFFIX = "e_score_correction_bias"


def experts_name(layer: int, part: str) -> str:
    """Name of the stacked `gate_up` or `down` of a layer."""
    return f"{layer_prefix(layer)}mlp.experts.{part}"


def trained_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Every tensor of the trainable model, the router's biases included, by name."""
    shapes = dict(global_shapes(config))
    for layer in range(config.num_hidden_layers):
        shapes |= layer_shapes(config, layer)
    shapes |= mtp_shapes(config)
    experts = config.n_routed_experts
    wide, hidden = expert_shape(config, "gate_proj")
    for layer in moe_layers(config, has_mtp=True):
        shapes[experts_name(layer, "gate_up")] = (experts, 2 * wide, hidden)
        shapes[experts_name(layer, "down")] = (experts, hidden, wide)
    return shapes


def initial(name: str, shape: tuple[int, ...], config: ModelConfig, generator: torch.Generator) -> Tensor:
    """The value that training starts from, fp32; Transformers' rules but for convolution, experts and index weights."""
    normal = torch.randn(shape, generator=generator)
    uniform = torch.rand(shape, generator=generator)
    last = name.rsplit(".", 1)[-1]
    if name.endswith(".dt_bias"):
        low, high = (math.log(rate) for rate in DECAY_RATES)
        share: Tensor = torch.exp(low + (high - low) * uniform) / -config.linear_lower_bound
        return share.logit()
    if "conv1d" in name:
        return (2 * uniform - 1) * CONV_BOUND
    if name.endswith("indexer.weights_proj.weight"):
        # Positive entries, so that heads agree on the sign; small, so that a query whose inputs sum below 0 (and would
        # prefer the worst pools) starts near indifference instead.
        return (1 + 0.1 * normal).abs() / math.sqrt(config.index_n_heads * shape[1])
    if last == "down" and ".experts." in name:
        # The router's factor then leaves the routed sum as large as the shared expert's.
        return normal * STANDARD_DEVIATION / config.routed_scaling_factor
    if last.endswith("_scale") or last == "index_kpool_compress_gate" or (last == "weight" and len(shape) == 1):
        return torch.ones(shape)
    if last in ("A_log", "bias", BIAS_SUFFIX, "index_kpool_compress_ape") or last.endswith("_base"):
        return torch.zeros(shape)
    return normal * STANDARD_DEVIATION


def plant(root: nn.Module, name: str, value: Tensor) -> None:
    """Registers value under a dotted name, so that root.named_parameters() (or named_buffers()) spells it so."""
    *path, leaf = name.split(".")
    module = root
    for part in path:
        if part not in dict(module.named_children()):
            module.add_module(part, nn.Module())
        module = module.get_submodule(part)
    if leaf == BIAS_SUFFIX:
        module.register_buffer(leaf, value)
    else:
        module.register_parameter(leaf, nn.Parameter(value))


class Weights:
    """The tensors below one prefix during one forward; what was rounded to the compute dtype is rounded once."""

    def __init__(
        self, tensors: dict[str, Tensor], dtype: torch.dtype, prefix: str = "", rounded: dict[str, Tensor] | None = None
    ) -> None:
        self._tensors, self.dtype, self._prefix = tensors, dtype, prefix
        self._rounded: dict[str, Tensor] = {} if rounded is None else rounded

    def under(self, prefix: str) -> "Weights":
        """The tensors whose names go on with prefix."""
        return Weights(self._tensors, self.dtype, self._prefix + prefix, self._rounded)

    def master(self, name: str) -> Tensor:
        """The fp32 tensor."""
        return self._tensors[self._prefix + name]

    def __call__(self, *names: str) -> Tensor:
        """One tensor in the compute dtype, or several, one below the other."""
        key = "|".join((self._prefix, *names))
        if key not in self._rounded:
            masters = [self.master(name) for name in names]
            self._rounded[key] = (torch.cat(masters) if len(masters) > 1 else masters[0]).to(self.dtype)
        return self._rounded[key]
