"""Every gate by name, in the order of the table."""

from collections.abc import Awaitable, Callable, Mapping

from twinspark_tools.gates import (
    background,
    batchexact,
    boundaries,
    cancel,
    chunkexact,
    constrained,
    load,
    lone_slot,
    transcripts,
)
from twinspark_tools.gates.outcome import Outcome, skipped
from twinspark_tools.gates.server import Server

Gate = Callable[[Server], Awaitable[Outcome]]


def not_here(reason: str) -> Gate:
    """A gate that is listed and not run."""

    async def run(_server: Server) -> Outcome:
        return skipped(reason)

    return run


GATES: Mapping[str, Gate] = {
    "exact": not_here("there is no drafting yet"),
    "batchexact": batchexact.run,
    "chunkexact": chunkexact.run,
    "boundaries": boundaries.run,
    "transcripts": transcripts.run,
    "cancel": cancel.run,
    "background": background.run,
    "lone-slot": lone_slot.run,
    "constrained": constrained.run,
    "load": load.run,
    "resumed": not_here("there are no stored prefixes yet"),
    "ranks": not_here("compares what no client sees: `make test` runs it"),
    "reference": not_here("compares logits with Transformers: `make test` runs it"),
}
