"""Kept tokens a round on documents that training never sees, by kind, while a drafter trains."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from twinspark_demo.documents.mixture import KINDS
from twinspark_demo.drafter.drafting import draft, kept_each_round
from twinspark_demo.drafter.model import Drafter
from twinspark_demo.drafter.target import Reading, Target
from twinspark_demo.drafter.training.plan import LONG_ROW, BlockFeed
from twinspark_demo.drafter.training.step import BlockBatch
from twinspark_demo.rows.dataset import PADDING_ID, to_tensors
from twinspark_demo.rows.encode import Document, Encoder
from twinspark_demo.rows.packing import pack_rows, to_batch
from twinspark_demo.training.check import LONG_FROM, documents

LONG_KIND = "needle, long"


@dataclass(frozen=True, slots=True)
class Kept:
    """Of one kind, over all replies."""

    kind: str
    tokens: int  # that rounds kept; the first of each reply is not among them
    rounds: int

    @property
    def mean(self) -> float:
        """Kept tokens a round; 0 without rounds."""
        return self.tokens / max(self.rounds, 1)


@dataclass(frozen=True, slots=True)
class _Reply:
    row: int
    first: int  # place of its first token
    said: Sequence[int]  # the target's own tokens, up to the first that is not the text


@dataclass(frozen=True, slots=True)
class _Rows:
    kinds: Sequence[str]  # of each row
    batch: BlockBatch
    reading: Reading
    replies: Sequence[_Reply]


class HeldOut:
    """Rows of every kind with the target's reading of them, which never changes."""

    def __init__(self, target: Target, tokenizer: Path, feeds: Sequence[BlockFeed], device: torch.device) -> None:
        """Rows have the sizes of the feeds, so that what was compiled for them serves here too."""
        encoder = Encoder.load(tokenizer)
        self._target = target
        self._rows = [self._read(encoder, feed, device) for feed in feeds]

    def kept(self, drafter: Drafter) -> list[Kept]:
        """One for each kind: greedy rounds through the replies that the target says, up to its first other token."""
        rounds: dict[str, list[int]] = defaultdict(list)
        for rows in self._rows:
            drafts = self._drafts(drafter, rows).tolist()
            for reply in rows.replies:
                behind = drafts[reply.row][reply.first : reply.first + len(reply.said)]
                rounds[rows.kinds[reply.row]] += kept_each_round(reply.said, behind)
        return [Kept(kind, sum(kept), len(kept)) for kind, kept in rounds.items()]

    def _read(self, encoder: Encoder, feed: BlockFeed, device: torch.device) -> _Rows:
        if feed.row_tokens == LONG_ROW:
            kinds = [LONG_KIND] * feed.rows
            long = (found for found in documents(encoder, "needle", LONG_ROW) if len(found.ids) >= LONG_FROM)
            drawn = list(islice(pack_rows(long, LONG_ROW), feed.rows))
        else:
            kinds = [list(KINDS)[place % len(KINDS)] for place in range(feed.rows)]
            sources: dict[str, Iterator[list[Document]]] = {
                kind: pack_rows(documents(encoder, kind, feed.row_tokens), feed.row_tokens) for kind in set(kinds)
            }
            drawn = [next(sources[kind]) for kind in kinds]
        batch = BlockBatch.empty(feed.rows, feed.row_tokens, feed.blocks, device)
        batch.fill(to_tensors(to_batch(drawn, feed.row_tokens, PADDING_ID)))
        reading = self._target.read(batch.rows)
        return _Rows(kinds, batch, reading, list(_replies(batch, reading)))

    def _drafts(self, drafter: Drafter, rows: _Rows) -> Tensor:
        """int64 [B, T, 7]: behind every answer token of each row; elsewhere 0."""
        packed, taps = rows.batch.packed, rows.reading.taps
        is_answer, width = rows.batch.is_answer, rows.batch.anchors.shape[1]
        drafts = packed.tokens.new_zeros(*packed.tokens.shape, drafter.config.num_drafts)
        order = is_answer.long().argsort(dim=1, descending=True, stable=True)
        lent = (self._target.embedding, self._target.head)
        for start in range(0, int(is_answer.sum(1).max()), width):
            anchors = order[:, start : start + width]
            found = draft(drafter, taps, packed, anchors, lent)
            drafts.scatter_(1, anchors[..., None].expand_as(found), found)
        return drafts


def _replies(batch: BlockBatch, reading: Reading) -> Iterator[_Reply]:
    """Every reply of the rows."""
    packed = batch.packed
    tokens, documents, said, is_answer = (
        part.cpu().numpy() for part in (packed.tokens, packed.documents, reading.said, batch.is_answer)
    )
    for row in range(len(tokens)):
        ours = is_answer[row]
        is_first = ours[1:] & (~ours[:-1] | (documents[row, 1:] != documents[row, :-1]))
        for first in (np.flatnonzero(is_first) + 1).tolist():
            end = first + 1
            while end < len(ours) and ours[end] and documents[row, end] == documents[row, first]:
                end += 1
            text, own = tokens[row, first:end], said[row, first - 1 : end - 1]
            wrong = np.flatnonzero(text != own)
            yield _Reply(row, first, own[: wrong[0] + 1 if len(wrong) else len(own)].tolist())
