"""`python -m twinspark_tools.bench.scheduling MODEL`: the scheduler's share of a decode step, as JSON.

One rank in this process, all slots decoding. A step is what rank 0's loop does: plan, message to the other ranks,
execution, result, messages to the callers. Times are those of this process's CPU.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from twinspark_engine.convert import event_to_proto
from twinspark_engine.masks.source import NO_MASKS
from twinspark_engine.model_loading import open_checkpoint
from twinspark_engine.ranks.convert import plan_to_proto
from twinspark_engine.ranks.group import StepRunner
from twinspark_engine.ranks.transport import LocalTransport
from twinspark_engine.request import Limits, Request, SamplingParams
from twinspark_engine.scheduler.limits import SchedulerLimits
from twinspark_engine.scheduler.scheduler import Scheduler
from twinspark_engine.settings import Settings
from twinspark_rpc import configure_logging
from twinspark_tools.bench.machine import describe_machine, describe_versions, find_commit

PHASES = ("plan", "plan_message", "execute", "result", "event_messages")
BOOKKEEPING = tuple(phase for phase in PHASES if phase != "execute")


class PhaseClock:
    """CPU seconds by phase."""

    def __init__(self, now: Callable[[], float] = time.process_time) -> None:
        self.seconds = dict.fromkeys(PHASES, 0.0)
        self._now = now

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count what runs inside."""
        started = self._now()
        yield
        self.seconds[name] += self._now() - started


def run_step(scheduler: Scheduler, runner: StepRunner, clock: PhaseClock) -> None:
    """One step of rank 0's loop, without its queues."""
    with clock.phase("plan"):
        plan = scheduler.plan(time.monotonic())
        events = scheduler.take_admitted()
    with clock.phase("plan_message"):
        plan_to_proto(plan).SerializeToString()
    with clock.phase("execute"):
        result = runner.execute(plan)
    with clock.phase("result"):
        events += scheduler.apply(result, time.monotonic())
    with clock.phase("event_messages"):
        for event in events:
            event_to_proto(event.event).SerializeToString()


def fill(scheduler: Scheduler, num_streams: int, prompt_tokens: int, max_tokens: int) -> None:
    """One request for each slot; none ends by itself."""
    for stream in range(num_streams):
        prompt = tuple((stream + i) % 200 for i in range(prompt_tokens))
        limits = Limits(max_tokens, ignore_eos=True)
        scheduler.submit(Request(f"stream {stream}", prompt, SamplingParams(seed=stream), limits), time.monotonic())


def main(
    model: Annotated[Path, typer.Argument(help="Checkpoint folder.")],
    streams: Annotated[int, typer.Option(min=1, max=16, help="Slots, all of which decode.")] = 4,
    prompt_tokens: Annotated[int, typer.Option(min=1, help="Prompt of each stream.")] = 64,
    steps: Annotated[int, typer.Option(min=1, help="Measured steps.")] = 100,
) -> None:
    """Measure after as many steps to warm up."""
    num_tokens = prompt_tokens + 2 * steps + 2
    settings = Settings(model=model, slots=streams, context=num_tokens)
    runner = open_checkpoint(settings).load(LocalTransport(), NO_MASKS).runner
    limits = SchedulerLimits(
        streams, num_tokens, settings.chunk_tokens_beside_decoders, settings.chunk_tokens_alone, streams
    )
    scheduler = Scheduler(limits)
    torch.set_num_threads(1)
    fill(scheduler, streams, prompt_tokens, num_tokens - prompt_tokens)
    warm_up, clock = PhaseClock(), PhaseClock()
    for _ in range(steps + 1):
        run_step(scheduler, runner, warm_up)
    for _ in range(steps):
        run_step(scheduler, runner, clock)
    print(json.dumps(build_report(clock, streams, steps), indent=2))


def build_report(clock: PhaseClock, streams: int, steps: int) -> dict[str, Any]:
    """Microseconds a step by phase, and the share of all but the execution."""
    return {
        "commit": find_commit(),
        "machine": describe_machine(),
        "versions": describe_versions(),
        "streams": streams,
        "cpu_us_a_step": {name: round(1e6 * part / steps, 1) for name, part in clock.seconds.items()},
        "scheduler_share": round(
            sum(clock.seconds[name] for name in BOOKKEEPING) / max(sum(clock.seconds.values()), 1e-9), 4
        ),
    }


if __name__ == "__main__":
    configure_logging("bench", "error")  # stdout is the report's
    typer.run(main)
