"""Our logits beside the reference's: same selections but for near ties, then at most 1e-4 of a row's largest apart."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from support.forward_case import ForwardCase, join_ranks, on_ranks
from support.forward_steps import Step, run_steps
from support.hf_reference import HfRun
from support.selection_watch import NearTie, SelectionWatch
from twinspark_engine.model.model import Model
from twinspark_engine.model.rows import Rows
from twinspark_engine.model.state import ModelState

TOLERANCE = 1e-4
MAX_NEAR_TIES = 1 / 500
CONTEXT_ROOM = 64


class LogitMismatch(AssertionError):
    """A row's logits are further from the reference than fp32 rounding explains."""


class TooManyNearTies(AssertionError):
    """More rows chose otherwise at a near tie than chance explains: a tie rule or a score is wrong."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """What a comparison found."""

    num_rows: int
    worst: float
    near_ties: frozenset[NearTie]


class _WatchedModel(Model):
    """Announces the rows of each forward to the watch, on the thread that runs it."""

    watch: SelectionWatch

    def forward(self, rows: Rows, state: ModelState) -> Tensor:
        self.watch.begin(rows.positions)
        return super().forward(rows, state)


def compare(case: ForwardCase, run: HfRun, steps: Sequence[Step], world_size: int, fresh: bool = False) -> Agreement:
    """Run the steps over the ids of `run` on world_size ranks. Raises SelectionMismatch or LogitMismatch."""
    watch = SelectionWatch(run, case.shape)

    def work(model: Model, state: ModelState) -> Tensor:
        watched = _WatchedModel(model.config, model._weights, model._transport)
        watched.watch = watch
        return run_steps(watched, state, [run.ids], [1], steps)[0]

    context = max(len(run.ids), case.shape.dense_limit) + CONTEXT_ROOM
    with watch.installed():
        _, logits = join_ranks(case, on_ranks(case, world_size, work, context, fresh))
    worst = row_errors(logits, run.logits[: logits.shape[0]])
    if not worst.max() <= TOLERANCE:
        raise LogitMismatch(f"row {worst.argmax().item()} is off by {worst.max().item():.3g} of its largest logit")
    return Agreement(logits.shape[0], worst.max().item(), frozenset(watch.near_ties))


def row_errors(logits: Tensor, reference: Tensor) -> Tensor:
    """[T] largest absolute difference of a row over its largest absolute logit; NaN where anything is not finite."""
    return (logits - reference).abs().amax(dim=1) / reference.abs().amax(dim=1)


def assert_few_near_ties(found: Sequence[Agreement]) -> None:
    """Print what was compared. Raises TooManyNearTies if over one row in 500 chose otherwise than the reference."""
    rows = sum(agreement.num_rows for agreement in found)
    ties = [tie for agreement in found for tie in sorted(agreement.near_ties, key=str)]
    print(f"{rows} rows, worst {max(agreement.worst for agreement in found):.2e}, near ties: {ties}")
    tied_rows = sum(len({tie.position for tie in agreement.near_ties}) for agreement in found)
    if tied_rows > rows * MAX_NEAR_TIES:
        raise TooManyNearTies(f"{tied_rows} of {rows} rows")
