"""A mask source for runners: which ids follow is a hash of the grammar's source and of every token committed so far.

Any slip of slot, round or rank shows as another token. It keeps to MaskSource's contract, and checks that callers do.
"""

import hashlib
from collections.abc import Mapping, Sequence

from twinspark_engine.masks.source import Mask
from twinspark_engine.request import ConstraintFailure, Grammar

Failures = Mapping[tuple[str, int], ConstraintFailure]
"""By request_id and number of the window, from 0."""


def allowed_ids(source: str, output: Sequence[int], ends: Sequence[int], vocabulary: int) -> set[int]:
    """What follows an output: about a fifth of the ids, and those that end it about one time in six."""
    digest = hashlib.sha256(f"{source}|{list(output)}".encode()).digest()
    is_complete = digest[0] % 6 == 0
    stream = hashlib.shake_128(digest).digest(vocabulary)
    allowed = {token_id for token_id in range(vocabulary) if stream[token_id] % 5 == 0 and token_id not in ends}
    return allowed | set(ends) if is_complete or not allowed else allowed


def pack(token_ids: set[int], vocabulary: int) -> Mask:
    """A mask as it travels."""
    bits = sum(1 << token_id for token_id in token_ids)
    return memoryview(bits.to_bytes(-(-vocabulary // 32) * 4, "little"))


class ScriptedMasks:
    """A MaskSource. `refusals` are what its streams answer instead of a mask."""

    def __init__(self, vocabulary: int, refusals: Failures | None = None) -> None:
        self.vocabulary = vocabulary
        self.refusals = refusals or {}
        self.open_streams: list[ScriptedStream] = []
        self.num_opened = 0

    def open(self, request_id: str, grammar: Grammar, end_token_ids: Sequence[int]) -> "ScriptedStream":
        stream = ScriptedStream(self, request_id, grammar.source, list(end_token_ids))
        self.open_streams.append(stream)
        self.num_opened += 1
        return stream


class ScriptedStream:
    """One request's masks."""

    def __init__(self, owner: ScriptedMasks, request_id: str, source: str, ends: list[int]) -> None:
        self._owner = owner
        self._request_id = request_id
        self._source = source
        self._ends = ends
        self._output: list[int] = []
        self._number = -1
        self._is_posted = False

    def post(self, committed: Sequence[int]) -> None:
        assert not self._is_posted, "one window at a time"
        for token_id in committed:
            allowed = allowed_ids(self._source, self._output, self._ends, self._owner.vocabulary)
            assert token_id in allowed, f"{token_id} was drawn, and is not allowed"
            self._output.append(token_id)
        self._number += 1
        self._is_posted = True

    def wait(self, seconds: float) -> Sequence[Mask] | ConstraintFailure:
        assert self._is_posted, "what was not asked for never comes"
        self._is_posted = False
        if (failure := self._owner.refusals.get((self._request_id, self._number))) is not None:
            return failure
        allowed = allowed_ids(self._source, self._output, self._ends, self._owner.vocabulary)
        return [pack(allowed, self._owner.vocabulary)]

    def close(self) -> None:
        self._owner.open_streams.remove(self)
