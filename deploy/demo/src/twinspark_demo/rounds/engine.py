"""The engine's runner in this process: greedy replies, and the taps of every row that it has run."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from twinspark_engine.model.config import ModelConfig
from twinspark_engine.model.model import Model
from twinspark_engine.model.parameters import LayerWeights, ModelWeights
from twinspark_engine.model.rows import Rows
from twinspark_engine.model.state import DsaState, KdaState, ModelState
from twinspark_engine.model.weights import eos_token_ids, load_weights, masked_token_ids
from twinspark_engine.ranks.transport import LocalTransport
from twinspark_engine.request import Limits, Request, SamplingParams
from twinspark_engine.runner.runner import Runner, RunnerLimits
from twinspark_engine.scheduler.plan import Admission, DecodeWindow, PrefillChunk, StepPlan

CONTEXT_TOKENS, CHUNK = 10_240, 1_024
MAX_TOKENS = 1_536
"""More than the longest right reply needs."""


@dataclass(frozen=True, slots=True)
class Said:
    """One greedy reply."""

    prompt: Sequence[int]
    tokens: Sequence[int]  # with the token that ends it
    taps: Tensor  # [rows, taps, D]: of the prompt and of all tokens but the last; valid until the next reply


class TappedModel(Model):
    """The engine's model, which keeps the mean of the four streams behind some layers."""

    def __init__(self, config: ModelConfig, weights: ModelWeights, layers: Sequence[int]) -> None:
        """For one slot, and fp32."""
        super().__init__(config, weights, LocalTransport())
        self._tapped = list(layers)
        self._means: list[Tensor] = []
        self.taps = torch.zeros(CONTEXT_TOKENS, len(layers), config.hidden_size)

    def forward(self, rows: Rows, state: ModelState) -> Tensor:
        """As Model.forward; taps has the rows by their positions."""
        self._means = []
        hidden = super().forward(rows, state)
        is_real = rows.slots >= 0
        means = torch.stack([self._means[layer] for layer in self._tapped], dim=1)
        self.taps[rows.positions[is_real]] = means[is_real]
        return hidden

    def _layer(
        self, streams: Tensor, rows: Rows, weights: LayerWeights, state: KdaState | DsaState, whole: ModelState
    ) -> Tensor:
        streams = super()._layer(streams, rows, weights, state, whole)
        self._means.append(streams.mean(1))
        return streams


class ServedTarget:
    """Says replies, one at a time."""

    def __init__(self, folder: Path, layers: Sequence[int]) -> None:
        """Raises CheckpointError where the engine would refuse the folder."""
        config = ModelConfig.from_folder(folder)
        weights = load_weights(folder, config, 0, 1, torch.float32)
        self.embedding, self.head = weights.embed, weights.head
        self._model = TappedModel(config, weights, layers)
        state = ModelState.allocate(config, 1, 1, CONTEXT_TOKENS, torch.float32)
        masked = masked_token_ids(folder, config.vocab_size)
        limits = RunnerLimits(1, CONTEXT_TOKENS, CHUNK, frozenset(eos_token_ids(folder)), masked)
        self._runner = Runner(self._model, state, LocalTransport(), limits)

    def reply(self, prompt: Sequence[int]) -> Said:
        """The greedy reply to a prompt's tokens."""
        self._runner.reset()
        most = min(MAX_TOKENS, CONTEXT_TOKENS - len(prompt))
        request = Request("rounds", tuple(prompt), SamplingParams(seed=0, temperature=0.0), Limits(most))
        chunks = [PrefillChunk(0, start, min(CHUNK, len(prompt) - start)) for start in range(0, len(prompt), CHUNK)]
        tokens: list[int] = []
        step, is_finished = 0, False
        while not is_finished:
            admissions = (Admission(0, request),) if step == 0 else ()
            windows = () if step < len(chunks) else (DecodeWindow(0),)
            plan = StepPlan(1, step, admissions=admissions, chunks=tuple(chunks[step : step + 1]), windows=windows)
            for output in self._runner.execute(plan).outputs:
                tokens += output.token_ids
                is_finished = output.finish_reason is not None
            step += 1
        return Said(prompt, tokens, self._model.taps[: len(prompt) + len(tokens) - 1])
