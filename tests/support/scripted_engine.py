"""An engine, as a choice sees it, that says given steps."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

from twinspark_gateway.generation import Admitted, Event, Finished, Generation, Step, TokenLogprob

EOS = frozenset({273, 277, 279})


@dataclass
class ScriptedEngine:
    """Says given steps and notices how far it was read."""

    steps: Sequence[Sequence[int]]
    num_sent: int = 0
    was_closed: bool = False
    events: list[Event] = field(default_factory=list)

    async def generate(self, generation: Generation) -> AsyncGenerator[Event, None]:
        """Run the script."""
        try:
            yield Admitted(0, 1, 0)
            for step in self.steps:
                self.num_sent += 1
                yield Step(step, [TokenLogprob(-float(token)) for token in step])
            last = self.steps[-1][-1] if self.steps else None
            reason = "stop" if last in EOS else "length"
            yield Finished(reason, last if last in EOS else None, 2, self.num_sent, 0, 0.0, 0.0, 0.0)
        finally:
            self.was_closed = True
