"""The counts of each kind for one folder."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from twinspark_demo.drafts.drafted import Drafted
from twinspark_demo.drafts.reading import read_replies
from twinspark_demo.drafts.replies import right_replies
from twinspark_demo.drafts.template import load_template
from twinspark_demo.evaluation.drawing import draw_prompts
from twinspark_demo.rows.encode import Encoder
from twinspark_demo.training.served_folder import load_folder
from twinspark_engine.model.weights import masked_token_ids


@dataclass(frozen=True, slots=True)
class KindDrafts:
    """What was drafted in the replies of a kind."""

    kind: str
    replies: Sequence[Drafted]

    @property
    def num_right(self) -> int:
        """Replies that the model says whole; the others are cut behind the first wrong token."""
        return sum(reply.is_right for reply in self.replies)

    @property
    def num_tokens(self) -> int:
        """Output tokens that are judged."""
        return sum(reply.judged for reply in self.replies)

    @property
    def num_left_out(self) -> int:
        """Tokens of right replies behind a cut."""
        return sum(len(reply.right) for reply in self.replies) - self.num_tokens

    def num_drafted(self, depth: int) -> int:
        """Output tokens that a chain of `depth` drafts can end at."""
        return sum(reply.num_drafted(depth) for reply in self.replies)

    def num_accepted(self, depth: int) -> int:
        """Of these, tokens where all the chain is accepted."""
        return sum(reply.num_accepted(depth) for reply in self.replies)

    def share(self, depth: int) -> float | None:
        """Accepted of drafted, 0 to 1; None where nothing was drafted."""
        drafted = self.num_drafted(depth)
        return self.num_accepted(depth) / drafted if drafted else None


def measure(folder: Path, kinds: Sequence[str], count: int, seed: int) -> Iterator[KindDrafts]:
    """Each kind's counts on `count` fresh prompts.

    Raises OSError, CheckpointError or ValueError for a folder that has not what it needs, ValueError for a kind whose
    right replies are not known.
    """
    template, encoder = load_template(folder), Encoder.load(folder / "tokenizer.json")
    replies = {kind: right_replies(draw_prompts(kind, count, seed), encoder, template) for kind in kinds}
    model = load_folder(folder)
    never_drawn = masked_token_ids(folder, model.config.vocab_size)
    for kind in kinds:
        yield KindDrafts(kind, read_replies(model.predictions, replies[kind], never_drawn))
