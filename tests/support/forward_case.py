"""A random model on both sides: Transformers' and ours, loaded from the folder that Transformers saved."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor
from transformers import Glm5NextForConditionalGeneration

from support.hf_models import HfShape, build_model, save_model
from support.hf_reference import HfRun, run_reference
from support.thread_transport import run_ranks
from twinspark_engine.model.config import ModelConfig
from twinspark_engine.model.model import Model
from twinspark_engine.model.parameters import ModelWeights
from twinspark_engine.model.state import ModelState
from twinspark_engine.model.weights import load_weights
from twinspark_engine.ranks.transport import LocalTransport, Transport

NUM_SLOTS = 4
Result = TypeVar("Result")


@dataclass
class ForwardCase:
    """One shape's reference model, the folder it was saved to, and what was computed from them so far."""

    shape: HfShape
    folder: Path
    _runs: dict[int, HfRun] = field(default_factory=dict)
    _weights: dict[tuple[int, int, torch.dtype], ModelWeights] = field(default_factory=dict)

    @cached_property
    def reference_model(self) -> Glm5NextForConditionalGeneration:
        """Transformers' model; its folder is written on first use."""
        model = build_model(self.shape)
        save_model(model, self.folder)
        return model

    @cached_property
    def config(self) -> ModelConfig:
        """Ours, read from the saved folder."""
        assert self.reference_model is not None
        return ModelConfig.from_folder(self.folder)

    def prompt(self, length: int) -> list[int]:
        """The ids of the prompt of this length."""
        generator = torch.Generator().manual_seed(length)
        return torch.randint(0, self.shape.vocab, (length,), generator=generator).tolist()

    def reference(self, length: int) -> HfRun:
        """Transformers' run of that prompt."""
        if length not in self._runs:
            self._runs[length] = run_reference(self.reference_model, self.prompt(length))
        return self._runs[length]

    def load(self, rank: int, world_size: int, dtype: torch.dtype = torch.float32) -> ModelWeights:
        """One rank's weights, read anew."""
        return load_weights(self.folder, self.config, rank, world_size, dtype)

    def weights(self, rank: int, world_size: int, dtype: torch.dtype = torch.float32) -> ModelWeights:
        """One rank's weights, read once."""
        key = (rank, world_size, dtype)
        if key not in self._weights:
            self._weights[key] = self.load(*key)
        return self._weights[key]


@cache
def forward_case(shape: HfShape) -> ForwardCase:
    """The case of a shape, built once a test process."""
    return ForwardCase(shape, Path(_folders().name) / f"model-{abs(hash(shape)):x}")


@lru_cache(maxsize=1)
def _folders() -> tempfile.TemporaryDirectory[str]:
    """Kept until the process ends, and removed with it."""
    return tempfile.TemporaryDirectory(prefix="twinspark-forward-")


def on_ranks(
    case: ForwardCase,
    world_size: int,
    work: Callable[[Model, ModelState], Result],
    context: int,
    fresh: bool = False,
    dtype: torch.dtype = torch.float32,
) -> list[Result]:
    """Run work(model, state) on every rank of a group and return the results in rank order.

    The state has NUM_SLOTS slots of `context` positions. `fresh` reads the weights anew.
    """

    def rank_work(transport: Transport) -> Result:
        read = case.load if fresh else case.weights
        weights = read(transport.rank, world_size, dtype)
        state = ModelState.allocate(case.config, world_size, NUM_SLOTS, context, dtype)
        with torch.inference_mode():
            return work(Model(case.config, weights, transport), state)

    if world_size == 1:
        return [rank_work(LocalTransport())]
    for rank in range(world_size):
        case.weights(rank, world_size, dtype)
    return run_ranks(world_size, rank_work)


def join_ranks(case: ForwardCase, results: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """(hidden [T, D], logits [T, vocab]) of run_steps' rows from all ranks, which must agree on hidden bit for bit."""
    hidden = [result[:, : case.config.hidden_size] for result in results]
    for rank, other in enumerate(hidden):
        assert torch.equal(hidden[0], other), f"rank {rank} holds other hidden rows than rank 0"
    return hidden[0], torch.cat([result[:, case.config.hidden_size :] for result in results], dim=1)
