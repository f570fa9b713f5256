"""Routed experts one by one, as checkpoints and the encoder know them."""

from collections.abc import Mapping

import torch
from torch import Tensor

from twinspark_demo.training.model.parameters import experts_name
from twinspark_engine.model.config import ModelConfig
from twinspark_engine.model.weights.names import expert_prefix, moe_layers


def expert_matrices(config: ModelConfig, tensors: Mapping[str, Tensor]) -> list[tuple[str, Tensor]]:
    """(published prefix without its last dot, view [out, in]) of each projection of each routed expert."""
    matrices = []
    for layer in moe_layers(config, has_mtp=True):
        gate, up = tensors[experts_name(layer, "gate_up")].detach().chunk(2, dim=1)
        projections = {"gate_proj": gate, "up_proj": up, "down_proj": tensors[experts_name(layer, "down")].detach()}
        for expert in range(config.n_routed_experts):
            for projection, stack in projections.items():
                matrices.append((expert_prefix(layer, expert, projection), stack[expert]))
    return matrices


@torch.no_grad()
def set_expert_matrices(views: list[tuple[str, Tensor]], matrices: Mapping[str, Tensor]) -> None:
    """Copies matrices, by the same prefixes, into the views."""
    for prefix, view in views:
        view.copy_(matrices[prefix])
