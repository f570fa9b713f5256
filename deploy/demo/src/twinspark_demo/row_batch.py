"""RowBatch: packed rows of tokens, as the training loop moves them to a device."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray


class TokenClass(IntEnum):
    """How the prediction of a token is weighed in the loss."""

    SILENT = 0  # filler, codes, padding
    PROMPT = 1  # what others than the assistant say
    ANSWER = 2  # what the assistant says, its thinking and the token that ends a reply


@dataclass(frozen=True, slots=True)
class RowBatch:
    """B rows of T tokens. A row starts at a document's start; documents start at multiples of 16 within a row."""

    tokens: NDArray[np.int16]  # [B, T]
    classes: NDArray[np.uint8]  # [B, T] TokenClass of each token as a target
    documents: NDArray[np.int16]  # [B, T] index of the document within the row; padding has that of the one before it
    positions: NDArray[np.int16]  # [B, T] position within the document; 0 at a document's start
