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
from twinspark_demo.rows.dataset import PADDING_ID, document_budget, to_tensors
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


@dataclass(frozen=True, slots=True)
class CheckRows:
    """How much is judged: short rows of each kind, long rows at a time, and how many times."""

    short: int = 36
    long: int = 4
    long_batches: int = 4


def check_abilities(model: DemoModel, tokenizer: Path, rows: CheckRows, *, sparse: bool) -> Iterator[Ability]:
    """Every kind on short rows, then needles on long rows. The model stays as it is."""
    encoder = Encoder.load(tokenizer)
    options = ForwardOptions(sparse=sparse)
    for kind in KINDS:
        drawn = pack_rows(documents(encoder, kind, SHORT_ROW), SHORT_ROW)
        yield judge(model, kind, list(islice(drawn, rows.short)), SHORT_ROW, options)
    long = (document for document in documents(encoder, "needle", LONG_ROW) if len(document.ids) >= LONG_FROM)
    drawn = pack_rows(long, LONG_ROW)
    batches = (list(islice(drawn, rows.long)) for _ in range(rows.long_batches))
    abilities = [judge(model, "needle, long", batch, LONG_ROW, options) for batch in batches]
    yield Ability(
        "needle, long",
        sum(ability.asked for ability in abilities),
        sum(ability.right for ability in abilities),
        sum(ability.drafts_accepted for ability in abilities) / len(abilities),
    )


def documents(encoder: Encoder, kind: str, row_tokens: int) -> Iterator[Document]:
    """An endless stream of fresh documents of one kind."""
    drawn = conversations(SEED, {kind: 1.0}, document_budget(row_tokens))
    while True:
        yield from encoder.encode(list(islice(drawn, 32)))


def judge(
    model: DemoModel, label: str, rows: Sequence[Sequence[Document]], row_tokens: int, options: ForwardOptions
) -> Ability:
    """The line of these documents, packed as given, in one forward.

    Gradients stay on: with the rows of a training step, what was compiled for it serves here too.
    """
    device = next(model.parameters()).device
    packed = to_batch(rows, row_tokens, PADDING_ID)
    batch = empty_batch(len(rows), row_tokens, device)
    BatchFiller(EVERY_ANSWER, device).fill(batch, to_tensors(packed))
    losses = model(batch, options)
    answer = batch.weights > 0
    accepted = int((losses.mtp_correct & answer).sum()) / max(int(answer.sum()), 1)
    return Ability(label, sum(map(len, rows)), _documents_right(packed, (losses.correct | ~answer).cpu()), accepted)


def _documents_right(batch: RowBatch, fine: torch.Tensor) -> int:
    """How many documents have no wrong answer token; fine bool [B, T]."""
    most = int(batch.documents.max()) + 1
    rows = torch.arange(len(batch.documents))[:, None]
    keys = rows * most + torch.from_numpy(batch.documents).long()
    found = keys.unique()
    wrong = keys[~fine].unique()
    return len(found) - len(wrong)
