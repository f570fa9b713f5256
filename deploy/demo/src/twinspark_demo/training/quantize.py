"""Between two stages: the routed experts are encoded, and the decoded matrices take their place for good."""

from collections.abc import Mapping

import torch

from twinspark_demo.quantization import Exl3Tensors, dequantize, quantize_experts
from twinspark_demo.training.cluster import Cluster
from twinspark_demo.training.model import DemoModel


def quantize_and_freeze(model: DemoModel, cluster: Cluster) -> Mapping[str, Exl3Tensors]:
    """EXL3 of every routed expert by published prefix, the same in every process; the model computes with it now."""
    matrices = dict(model.expert_matrices())
    experts = quantize_experts(matrices, cluster.device)
    freeze(model, experts)
    # Every process encoded the same matrices, but only equal bits may go on: the first process' are everybody's.
    cluster.broadcast([matrix.contiguous() for matrix in matrices.values()])
    return experts


def freeze(model: DemoModel, experts: Mapping[str, Exl3Tensors]) -> None:
    """The decoded experts become the model's, and train no more."""
    with torch.no_grad():
        model.freeze_experts({prefix: dequantize(tensors) for prefix, tensors in experts.items()})
