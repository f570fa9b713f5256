"""Trainable demo models for tests: small, with every parameter random, or with the weights of a Transformers model."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from support.checkpoint_folders import micro_config
from twinspark_demo.training.model import DemoModel, TrainingBatch
from twinspark_engine.model.config import ModelConfig

SPREADS: Mapping[str, tuple[float, float]] = {
    "_base": (0.3, 0.8),
    "_scale": (0.9, 0.3),
    "e_score_correction_bias": (0.1, 0.25),
    "k_norm.bias": (0.2, 0.5),
    "index_kpool_compress_ape": (0.2, 1.0),
    "A_log": (0.2, 0.4),
    "dt_bias": (-2.0, 2.0),
    "conv1d.weight": (0.1, 0.6),
    "embed_tokens.weight": (0.0, 1.0),
}


def small_config(**text: object) -> ModelConfig:
    """Four layers of each kind and the MTP layer; index_topk 16: rows past position 18 select."""
    return ModelConfig.from_json(micro_config(**{"hidden_size": 48, "moe_intermediate_size": 32, **text}))


def random_model(config: ModelConfig, seed: int = 0) -> DemoModel:
    """A model without a parameter at 0 or 1, where a wrong formula could give the right answer."""
    model = DemoModel(config)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
            fallback = (1.0, 0.25) if tensor.dim() == 1 else (0.0, tensor.shape[-1] ** -0.5)
            mean, deviation = next((s for suffix, s in SPREADS.items() if name.endswith(suffix)), fallback)
            tensor.copy_(mean + deviation * torch.randn(tensor.shape, generator=generator))
    return model


def model_with(config: ModelConfig, tensors: Mapping[str, Tensor]) -> DemoModel:
    """A model with these published tensors; parameters that they lack (the MTP layer's) stay as initialised."""
    model = DemoModel(config)
    for name, tensor in model.plain_tensors().items():
        if name in tensors:
            tensor.copy_(tensors[name].view_as(tensor))
    matrices = {prefix: view.clone() for prefix, view in model.expert_matrices()}
    matrices |= {prefix: tensors[f"{prefix}.weight"] for prefix in matrices if f"{prefix}.weight" in tensors}
    model.set_expert_matrices(matrices)
    return model


def pack(documents: Sequence[Sequence[int]], length: int = 0) -> TrainingBatch:
    """One row with these documents, each padded with token 0 to a multiple of 16, the last one to `length`."""
    tokens: list[int] = []
    weights: list[float] = []
    places: list[int] = []
    positions: list[int] = []
    for place, ids in enumerate(documents):
        padded = -(-len(ids) // 16) * 16
        if place == len(documents) - 1:
            padded = max(padded, length - len(tokens))
        tokens += [*ids, *[0] * (padded - len(ids))]
        weights += [0.0, *[1.0] * (len(ids) - 1), *[0.0] * (padded - len(ids))]
        places += [place] * padded
        positions += range(padded)
    return TrainingBatch(
        torch.tensor([tokens]), torch.tensor([weights]), torch.tensor([places]), torch.tensor([positions])
    )


def stack(rows: Sequence[TrainingBatch]) -> TrainingBatch:
    """Rows of one length as one batch."""
    fields = ("tokens", "weights", "documents", "positions")
    return TrainingBatch(*(torch.cat([getattr(row, name) for row in rows]) for name in fields))


def random_documents(lengths: Sequence[int], vocabulary: int, seed: int = 0) -> list[list[int]]:
    """Random ids, one list a length."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(vocabulary, (length,), generator=generator).tolist() for length in lengths]
