"""The rounds of each kind for one drafter and one target."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from twinspark_demo.drafter.blocks import PackedRows
from twinspark_demo.drafter.drafting import draft, kept_each_round
from twinspark_demo.drafter.folder import load_drafter
from twinspark_demo.drafter.model import Drafter
from twinspark_demo.evaluation.drawing import ALL_NEEDLES, draw_prompts
from twinspark_demo.evaluation.filler import SAMPLE_SENTENCES, sample_text
from twinspark_demo.rounds.engine import Said, ServedTarget
from twinspark_demo.rounds.replies import Conversations
from twinspark_engine.model.config import ModelConfig


@dataclass(frozen=True, slots=True)
class ReplyRounds:
    """Of one reply."""

    prompt_tokens: int
    output_tokens: int
    kept: Sequence[int]  # tokens of each round; the first output token comes from the prompt's own pass
    block: int
    sees_code: bool | None = None
    """Whether the code that the reply tells is in the first block's window; None where the prompt hides none."""

    @property
    def fewest(self) -> int:
        """Rounds that it would take if every draft were right."""
        return math.ceil((self.output_tokens - 1) / self.block)


@dataclass(frozen=True, slots=True)
class KindRounds:
    """Of all replies of a kind."""

    kind: str
    replies: Sequence[ReplyRounds]

    @property
    def rounds(self) -> int:
        """Number of rounds."""
        return sum(len(reply.kept) for reply in self.replies)

    @property
    def kept(self) -> float | None:
        """Tokens that a round keeps, on average; None without rounds."""
        return self._kept_in(self.rounds)

    @property
    def most(self) -> float | None:
        """The same if every draft were right: replies end, and blocks with them."""
        return self._kept_in(sum(reply.fewest for reply in self.replies))

    @property
    def prompt_tokens(self) -> float:
        """Mean of the replies."""
        return sum(reply.prompt_tokens for reply in self.replies) / max(len(self.replies), 1)

    @property
    def output_tokens(self) -> float:
        """Mean of the replies."""
        return sum(reply.output_tokens for reply in self.replies) / max(len(self.replies), 1)

    def _kept_in(self, rounds: int) -> float | None:
        return sum(sum(reply.kept) for reply in self.replies) / rounds if rounds else None


def measure(model: Path, drafter: Path, kinds: Sequence[str], count: int, seed: int) -> Iterator[KindRounds]:
    """Each kind's rounds on `count` fresh prompts.

    Raises OSError, CheckpointError or ValueError for a folder that has not what it needs.
    """
    loaded = load_drafter(drafter)
    loaded.config.check_target(ModelConfig.from_folder(model))
    target = ServedTarget(model, loaded.config.target_layer_ids)
    conversations = Conversations(model, target)
    per_sentence = len(conversations.tokens(sample_text())) / SAMPLE_SENTENCES
    for kind in kinds:
        prompts = draw_prompts(kind, count, seed, per_sentence)
        replies: list[ReplyRounds] = []
        for prompt in prompts:
            code = conversations.tokens(prompt.expected["code"]) if kind.startswith(ALL_NEEDLES) else None
            for said in conversations.replies(prompt):
                sees_code = None if code is None else is_seen(code, said.prompt, loaded.config.sliding_window)
                replies.append(replace(rounds_of(said, loaded, target), sees_code=sees_code))
        yield KindRounds(kind, replies)


def is_seen(part: Sequence[int], prompt: Sequence[int], window: int) -> bool:
    """Whether the block behind a prompt sees all of a part of it. ValueError if the prompt does not hold the part."""
    for start in range(len(prompt) - len(part), -1, -1):
        if list(prompt[start : start + len(part)]) == list(part):
            return len(prompt) - start < window
    raise ValueError("the prompt's tokens do not hold the code's")


def rounds_of(said: Said, drafter: Drafter, target: ServedTarget) -> ReplyRounds:
    """The rounds that a reply is said in."""
    kept = kept_each_round(said.tokens, drafts_of(said, drafter, target))
    return ReplyRounds(len(said.prompt), len(said.tokens), kept, drafter.config.block_size)


def drafts_of(said: Said, drafter: Drafter, target: ServedTarget) -> list[list[int]]:
    """Drafts behind each token of a reply but the last, from the taps before that token."""
    start, end = len(said.prompt), len(said.prompt) + len(said.tokens) - 1
    if start == end:
        return []
    first = max(start - drafter.config.sliding_window, 0)  # no block sees further back
    tokens = torch.tensor([*said.prompt[first:], *said.tokens[:-1]])[None]
    rows = PackedRows(tokens, torch.zeros_like(tokens), torch.arange(first, end)[None])
    taps, anchors = said.taps[None, first:].flatten(2), torch.arange(start - first, end - first)[None]
    drafts: list[list[int]] = draft(drafter, taps, rows, anchors, (target.embedding, target.head))[0].tolist()
    return drafts
