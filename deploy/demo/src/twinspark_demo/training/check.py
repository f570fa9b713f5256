"""What the model can do, by kind, on fresh documents: whole replies right, and MTP first drafts accepted.

One forward a row judges all its replies: every answer token must be the most likely one given the true text before
it, which for a reply that is a function of its prompt is the same as a right greedy reply.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch

from twinspark_demo.documents.mixture import KINDS, conversations
from twinspark_demo.row_batch import RowBatch, TokenClass
from twinspark_demo.rows.dataset import PADDING_ID, to_tensors
from twinspark_demo.rows.encode import Document, Encoder
from twinspark_demo.rows.packing import pack_rows, to_batch
from twinspark_demo.training.batches import BatchFiller, empty_batch
from twinspark_demo.training.model import DemoModel, ForwardOptions

SEED = 1 << 40  # no worker of training has it
EVERY_ANSWER = {TokenClass.SILENT: 0.0, TokenClass.PROMPT: 0.0, TokenClass.ANSWER: 1.0}
SHORT_ROW = 1024
LONG_ROW = 9216
LONG_FROM = 4096  # tokens of a document that counts as a long needle


@dataclass(frozen=True, slots=True)
class Ability:
    """One line of the table."""

    kind: str
    asked: int  # documents; one with several replies is right if all of them are
    right: int
    drafts_accepted: float  # share of answer tokens that the first MTP depth predicted


def check_abilities(model: DemoModel, tokenizer: Path, *, sparse: bool, rows: int) -> Iterator[Ability]:
    """Every kind on `rows` short rows, then needles on long rows. The model stays as it is."""
    encoder = Encoder.load(tokenizer)
    options = ForwardOptions(sparse=sparse)
    for kind in KINDS:
        drawn = documents(encoder, kind, SHORT_ROW)
        yield judge(model, kind, list(islice(pack_rows(drawn, SHORT_ROW), rows)), SHORT_ROW, options)
    long = (document for document in documents(encoder, "needle", LONG_ROW) if len(document.ids) >= LONG_FROM)
    yield judge(model, "needle, long", list(islice(pack_rows(long, LONG_ROW), rows)), LONG_ROW, options)


def documents(encoder: Encoder, kind: str, row_tokens: int) -> Iterator[Document]:
    """An endless stream of fresh documents of one kind."""
    drawn = conversations(SEED, {kind: 1.0}, min(row_tokens - 16, 9000))
    while True:
        yield from encoder.encode(list(islice(drawn, 32)))


@torch.no_grad()
def judge(
    model: DemoModel, label: str, rows: Sequence[Sequence[Document]], row_tokens: int, options: ForwardOptions
) -> Ability:
    """The line of these documents, packed as given, a row at a time of at most 8."""
    right, accepted, answers = 0, 0, 0
    device = next(model.parameters()).device
    filler = BatchFiller(EVERY_ANSWER, device)
    for start in range(0, len(rows), 8):
        part = to_batch(rows[start : start + 8], row_tokens, PADDING_ID)
        batch = empty_batch(len(part.tokens), row_tokens, device)
        filler.fill(batch, to_tensors(part))
        losses = model(batch, options)
        answer = batch.weights > 0
        right += _documents_right(part, (losses.correct | ~answer).cpu())
        accepted += int((losses.mtp_correct & answer).sum())
        answers += int(answer.sum())
    asked = sum(map(len, rows))
    return Ability(label, asked, right, accepted / max(answers, 1))


def _documents_right(batch: RowBatch, fine: torch.Tensor) -> int:
    """How many documents have no wrong answer token; fine bool [B, T]."""
    most = int(batch.documents.max()) + 1
    rows = torch.arange(len(batch.documents))[:, None]
    keys = rows * most + torch.from_numpy(batch.documents).long()
    found = keys.unique()
    wrong = keys[~fine].unique()
    return len(found) - len(wrong)
