"""Asks all prompts of a kind, greedily and sampled, a few at once, and judges the answers."""

import asyncio
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from twinspark_demo.evaluation.answer import Answer
from twinspark_demo.evaluation.checkers import CHECKERS
from twinspark_demo.evaluation.prompt import Prompt
from twinspark_demo.evaluation.server import Sampling, Server

CONCURRENCY = 4
GREEDY, SAMPLED = "greedy", "sampled"
GREEDY_ONLY = frozenset({"needle_8000"})


@dataclass(frozen=True, slots=True)
class Outcome:
    """One prompt asked in one mode."""

    prompt: Prompt
    mode: str
    answer: Answer
    right: bool


@dataclass(frozen=True, slots=True)
class KindScore:
    """All outcomes of a kind."""

    kind: str
    outcomes: Sequence[Outcome]
    seconds: float

    def share(self, mode: str) -> float | None:
        """Right answers of a mode, 0 to 1; None where it was not asked."""
        return _share([outcome for outcome in self.outcomes if outcome.mode == mode])

    @property
    def held_out_share(self) -> float | None:
        """Right answers to held-out wordings, both modes together."""
        return _share([outcome for outcome in self.outcomes if outcome.prompt.held_out])

    @property
    def mean_output_tokens(self) -> float:
        """Tokens of a conversation's replies."""
        return sum(outcome.answer.output_tokens for outcome in self.outcomes) / max(1, len(self.outcomes))

    @property
    def wrong(self) -> list[Outcome]:
        """Every outcome that is not right."""
        return [outcome for outcome in self.outcomes if not outcome.right]


def _share(outcomes: Sequence[Outcome]) -> float | None:
    return sum(outcome.right for outcome in outcomes) / len(outcomes) if outcomes else None


async def score_kind(server: Server, kind: str, prompts: Sequence[Prompt], seed: int) -> KindScore:
    """Ask every prompt once in each mode; `seed` and the prompt's place make the seed of a sampled request."""
    places = asyncio.Semaphore(CONCURRENCY)

    async def outcome_of(prompt: Prompt, mode: str, sampling: Sampling) -> Outcome:
        async with places:
            answer = await server.answer(prompt, sampling)
        return Outcome(prompt, mode, answer, is_right(prompt, answer))

    started = time.monotonic()
    jobs = [outcome_of(prompt, GREEDY, {"temperature": 0}) for prompt in prompts]
    if kind not in GREEDY_ONLY:
        jobs += [
            outcome_of(prompt, SAMPLED, {"seed": zlib.crc32(f"{seed}/{kind}/{place}".encode())})
            for place, prompt in enumerate(prompts)
        ]
    outcomes = await asyncio.gather(*jobs)
    return KindScore(kind, outcomes, time.monotonic() - started)


def is_right(prompt: Prompt, answer: Answer) -> bool:
    """Whether the reply ended by itself and the kind's checker takes it."""
    return not answer.error and CHECKERS[prompt.kind](prompt.expected, answer.reply)
