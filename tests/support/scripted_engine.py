"""An engine, as a choice sees it, that says given steps."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

from twinspark_gateway.generation import Admitted, Event, Finished, Generation, Step, TokenLogprob

EOS = frozenset({273, 277, 279})


@dataclass
class ScriptedEngine:
    """Says given steps and notices how far it was read; a call that goes on after prior output says the later ones."""

    steps: Sequence[Sequence[int]]
    later: Sequence[Sequence[int]] = ()
    # What it was asked.
    generations: list[Generation] = field(default_factory=list)
    # Of each call that ended by itself: queue, prefill and decode seconds, and rounds.
    times: tuple[float, float, float, int] = (0.0, 0.0, 0.0, 0)
    num_sent: int = 0
    was_closed: bool = False
    events: list[Event] = field(default_factory=list)

    async def generate(self, generation: Generation) -> AsyncGenerator[Event, None]:
        """Run the script."""
        steps = self.later if generation.num_prior_output_tokens else self.steps
        self.generations.append(generation)
        num_left = generation.max_tokens
        try:
            yield Admitted(len(self.generations), 1, 250)
            for step in steps:
                said = step[:num_left]
                num_left -= len(said)
                if said:
                    self.num_sent += 1
                    yield Step(said, [TokenLogprob(-float(token)) for token in said])
            last = said[-1] if steps and said else None
            reason = "stop" if last in EOS else "length"
            num_output = generation.max_tokens - num_left + generation.num_prior_output_tokens
            yield Finished(reason, last if last in EOS else None, 2, num_output, 0, *self.times)
        finally:
            self.was_closed = True
