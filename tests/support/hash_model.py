"""A model whose logits are a hash of everything that a slot has seen: any slip of slot, position or order shows.

It has both kinds of state (a recurrent digest, and token rows addressed by position), both classes of rows, and one
exchange in each forward, like the real one.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from twinspark_engine.model.rows import PADDING_SLOT, Rows
from twinspark_engine.ranks.transport import Transport
from twinspark_kernels.paged import BLOCK_TOKENS, FIRST_BLOCK, NULL_BLOCK, build_table, map_blocks
from twinspark_kernels.row_class import RowClass

MASK = (1 << 64) - 1
HIDDEN = 8
CLASS_KEYS = {RowClass.PROMPT: 0x51, RowClass.DECODE: 0xA3}
LEVELS = 40


def mix(x: int) -> int:
    """The finalizer of SplitMix64."""
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


class HashState:
    """State of num_slots slots and the trash row; tokens lie in blocks, and every slot has some at first."""

    def __init__(self, num_slots: int, context: int) -> None:
        columns = -(-context // BLOCK_TOKENS)
        self.num_blocks = num_slots * columns
        self.digests = [0x1234] * (num_slots + 1)
        self.tokens = torch.zeros(FIRST_BLOCK + self.num_blocks, BLOCK_TOKENS, 1, dtype=torch.int64)
        self.table = build_table(num_slots, columns)
        self.table[:-1] = torch.arange(FIRST_BLOCK, len(self.tokens)).view(num_slots, columns)
        self.num_tokens = [0] * (num_slots + 1)

    def reset_slot(self, slot: int) -> None:
        """Only what a request at position 0 reads: old token rows stay, as in the real cache."""
        self.digests[slot] = 0
        self.num_tokens[slot] = 0

    def map_slot(self, slot: int, blocks: Sequence[int]) -> None:
        """As the real one."""
        map_blocks(self.table, slot, blocks)

    def find_null_write(self) -> int | None:
        """As the real one."""
        return 0 if self.tokens[NULL_BLOCK].any() else None

    def row(self, slot: int, position: int) -> Tensor:
        """[1]: the token row of a position, plus 1, in place; 0 where none was written."""
        return self.tokens[int(self.table[slot, position // BLOCK_TOKENS]), position % BLOCK_TOKENS]


class HashModel:
    """Rank-split logits [T, vocabulary / world_size] of a digest that one forward extends row by row."""

    def __init__(self, transport: Transport, vocabulary: int) -> None:
        self._transport = transport
        self._columns = vocabulary // transport.world_size

    @property
    def vocab_offset(self) -> int:
        """Id of this rank's first column."""
        return self._transport.rank * self._columns

    @property
    def num_vocab_columns(self) -> int:
        """This rank's columns."""
        return self._columns

    def forward(self, rows: Rows, state: HashState) -> Tensor:
        """Hidden rows [T, 8]: the bytes of each row's digest."""
        self._check_segments(rows)
        hidden = torch.zeros(rows.num_rows, HIDDEN)
        for row, (token_id, slot, position) in enumerate(
            zip(rows.ids.tolist(), rows.slots.tolist(), rows.positions.tolist(), strict=True)
        ):
            digest = self._advance(state, slot, token_id, position, CLASS_KEYS[rows.row_class])
            hidden[row] = torch.tensor(list(digest.to_bytes(HIDDEN, "little")))
        gathered = self._transport.gather(hidden)
        assert all(torch.equal(part, hidden) for part in gathered), "ranks computed different rows"
        return hidden

    def logits(self, hidden: Tensor, row_class: RowClass) -> Tensor:
        """Coarse values, so that many are tied."""
        ids = range(self.vocab_offset, self.vocab_offset + self._columns)
        found = torch.zeros(hidden.shape[0], self._columns)
        for row, entries in enumerate(hidden.tolist()):
            digest = mix(int.from_bytes(bytes(int(entry) for entry in entries), "little") ^ CLASS_KEYS[row_class])
            found[row] = torch.tensor([mix(digest ^ token_id) % LEVELS / 8.0 for token_id in ids])
        return found

    def _advance(self, state: HashState, slot: int, token_id: int, position: int, class_key: int) -> int:
        if slot != PADDING_SLOT:
            assert position == state.num_tokens[slot], f"slot {slot}: row {position} after {state.num_tokens[slot]}"
        state.num_tokens[slot] = position + 1
        state.row(slot, position)[:] = token_id + 1
        # A far row is read back by its position: a cache row in the wrong slot or place changes every later digest.
        far = int(state.row(slot, position // 2)) - 1
        digest = mix(state.digests[slot] ^ mix(token_id << 40 ^ position << 8 ^ class_key) ^ far << 20)
        state.digests[slot] = digest
        return digest

    @staticmethod
    def _check_segments(rows: Rows) -> None:
        slots = rows.slots.tolist()
        used = [slot for slot in slots if slot != PADDING_SLOT]
        assert slots[: len(used)] == used, "padding rows stand at the end"
        starts = [place for place, slot in enumerate(used) if place == 0 or used[place - 1] != slot]
        assert len(starts) == len(set(used)), "a slot's rows are one segment"
        if rows.row_class is RowClass.PROMPT:
            assert all(int(rows.positions[start]) % 64 == 0 for start in starts), "segments start at multiples of 64"
        else:
            assert len(used) == len(set(used)), "one decode row a slot"
