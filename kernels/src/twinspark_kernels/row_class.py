"""The two classes of rows: a position's bits are promised equal inside a class, never across the two."""

import enum


class RowClass(enum.Enum):
    """How a row is computed: its value is the height of the matmul tiles that the CPU reference uses for it.

    A tile is always computed whole, padded with zero rows, so the height costs time only where rows are few
    (decode) and saves it where they are many (prompt).
    """

    PROMPT = 64
    DECODE = 4

    @property
    def tile_rows(self) -> int:
        """Rows in one matmul tile of this class."""
        return self.value
