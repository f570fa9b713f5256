"""What goes into the trainable model and what comes out of it."""

from dataclasses import dataclass

from torch import Tensor


@dataclass
class TrainingBatch:
    """B rows of T tokens, T a multiple of 16.

    A row starts at a document's start; documents start at multiples of 16; padding belongs to the document before it.
    """

    tokens: Tensor  # int64 [B, T]
    weights: Tensor  # fp32 [B, T] loss weight of each token as a target; 0 at a document's first token
    documents: Tensor  # integer [B, T] index of the document within the row
    positions: Tensor  # integer [B, T] position within the document


@dataclass(frozen=True)
class ForwardOptions:
    """How one stage of training runs the forward."""

    sparse: bool = False  # DSA rows see what the indexer selects, else every earlier token of their document
    indexer_rows: int = 0  # random query rows a sequence that the indexer's loss looks at; 0: no such loss
    expert_noise: float = 0.0  # standard deviation of the noise on expert weights, in units of each matrix' rms
    mtp_depth: int = 1  # chained MTP steps, 1..3


@dataclass
class Losses:
    """Losses are fp32 scalars that carry gradients; the rest does not."""

    main: Tensor
    mtp: tuple[Tensor, ...]  # one a depth
    indexer: Tensor  # 0 without indexer_rows
    memory: Tensor  # how long KDA channels remember, see kda.py
    correct: Tensor  # bool [B, T]: this token was the most likely one, given those before it
    mtp_correct: Tensor  # bool [B, T]: the same of the first MTP depth
    router_load: Tensor  # fp32 [MoE layers, experts] rows sent to each expert; the MTP layer is the last


@dataclass
class Predictions:
    """Logits in the compute dtype, as the losses see them."""

    logits: Tensor  # [B, T, vocabulary]: row i predicts token i + 1
    mtp_logits: tuple[Tensor, ...]  # [B, T, vocabulary] each: row i of any depth predicts token i + 2
    hidden: Tensor  # [B, T, hidden] after the final norm


@dataclass
class Tapped:
    """What a drafter learns from, in the compute dtype."""

    logits: Tensor  # [B, T, vocabulary]: row i predicts token i + 1
    taps: Tensor  # [B, T, layers hidden]: means of the four streams after each tapped layer, side by side
