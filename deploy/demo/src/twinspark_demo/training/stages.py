"""The stages of training: what each sees, for how many steps, with which losses and rates."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from twinspark_demo.row_batch import TokenClass
from twinspark_demo.training.model import ForwardOptions


@dataclass(frozen=True, slots=True)
class Feed:
    """Rows of one length and mixture, and how the forward runs on them."""

    mixture: str  # a name in documents.mixture.MIXTURES
    row_tokens: int
    rows: int  # of each process
    options: ForwardOptions


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage. Steps take the feeds in turn; the rates fall along a half cosine after the warm-up."""

    name: str
    feeds: tuple[Feed, ...]
    steps: int
    learning_rates: tuple[float, float]  # first and last
    prompt_weight: float  # loss weight of what others than the assistant say
    mtp_weight: float = 0.3  # of each depth
    memory_weight: float = 0.1  # so that attention, not the recurrent state, finds what lies far back
    indexer_rates: tuple[float, float] = (1e-3, 1e-3)
    warmup_steps: int = 100
    quantized: bool = False  # starts from quantized, frozen experts

    def learning_rate(self, step: int, since_start: int) -> float:
        """Rate of step 0, 1, ... of the stage for all parameters but the indexers'; since_start: of this process' run.

        The optimizer starts anew with each run, so the warm-up does too.
        """
        return self._rate(self.learning_rates, step, since_start)

    def indexer_rate(self, step: int, since_start: int) -> float:
        """The same for the indexers' parameters."""
        return self._rate(self.indexer_rates, step, since_start)

    def _rate(self, ends: tuple[float, float], step: int, since_start: int) -> float:
        first, last = ends
        rate = last + (first - last) * 0.5 * (1.0 + math.cos(math.pi * min(step / self.steps, 1.0)))
        return rate * min((since_start + 1) / self.warmup_steps, 1.0)

    def class_weights(self) -> Mapping[TokenClass, float]:
        """Loss weight of each class of token."""
        return {TokenClass.SILENT: 0.0, TokenClass.PROMPT: self.prompt_weight, TokenClass.ANSWER: 1.0}


DENSE = ForwardOptions()
NOISY = ForwardOptions(indexer_rows=128, expert_noise=0.08)
SPARSE = ForwardOptions(sparse=True, indexer_rows=128)
SPARSE_CHAINED = ForwardOptions(sparse=True, indexer_rows=128, mtp_depth=3)

SHORT = Stage(
    name="short",
    feeds=(Feed("short", 1024, 36, DENSE),),
    steps=11_000,
    learning_rates=(2e-3, 1e-3),
    prompt_weight=0.1,
    warmup_steps=200,
)
LONG = Stage(
    name="long",
    feeds=(Feed("short", 1024, 36, NOISY), Feed("short", 1024, 36, NOISY), Feed("long", 9216, 4, NOISY)),
    steps=7000,
    learning_rates=(1e-3, 3e-4),
    prompt_weight=0.02,
)
RECOVERY = Stage(
    name="recovery",
    feeds=(Feed("short", 1024, 36, SPARSE), Feed("long", 9216, 4, SPARSE), Feed("short", 1024, 36, SPARSE_CHAINED)),
    steps=2500,
    learning_rates=(3e-4, 2e-5),
    prompt_weight=0.02,
    indexer_rates=(3e-4, 3e-5),
    quantized=True,
)
PLAN = (SHORT, LONG, RECOVERY)
