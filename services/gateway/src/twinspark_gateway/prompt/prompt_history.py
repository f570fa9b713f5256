"""What the request log says of a prompt without its text: salted hashes, and what it shares with others."""

import hashlib
import secrets
import threading
from array import array
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from twinspark_gateway.prompt.tokenizer import Tokenizer

_REMEMBERED_PROMPTS = 64
_HEAD_TOKENS = 4096
# Common prefixes are counted in whole blocks.
BLOCK_TOKENS = 64
_DIGEST_BYTES = 8
_ROLE_MARKERS = ("<|system|>", "<|user|>", "<|assistant|>", "<|observation|>")


@dataclass(frozen=True, slots=True)
class PromptTraits:
    """Hashes are salted for each process, so that nobody can try texts on them. Lengths are in tokens."""

    # Of the first 4,096 tokens.
    head_hash: str
    # Of all tokens up to the end of the first user message; requests of one conversation share it.
    conversation: str
    # What stands before the first user message; None where there is no such message.
    num_system_tokens: int | None
    system_hash: str | None
    # The longest common prefix with an earlier prompt of the conversation, and with one of another.
    num_common_own: int
    num_common_other: int


class PromptHistory:
    """Remembers the hashes of the last 64 prompts. Used from any thread: a long prompt takes milliseconds."""

    def __init__(self, user_marker: int | None, role_markers: frozenset[int], salt: bytes | None = None) -> None:
        self._user_marker = user_marker
        self._role_markers = role_markers
        self._salt = secrets.token_bytes(16) if salt is None else salt
        self._lock = threading.Lock()
        # (conversation, chained hashes of the blocks).
        self._prompts: deque[tuple[str, bytes]] = deque(maxlen=_REMEMBERED_PROMPTS)

    def note(self, prompt: Sequence[int]) -> PromptTraits:
        """Describe a prompt, and remember it for the next ones."""
        first_user, first_answer = self._find_turns(prompt)
        conversation = self._hash(prompt[:first_answer])
        chain = self._hash_blocks(prompt)
        common = {True: 0, False: 0}
        with self._lock:
            earlier = list(self._prompts)
            self._prompts.append((conversation, chain))
        for name, known in earlier:
            is_own = name == conversation
            common[is_own] = max(common[is_own], BLOCK_TOKENS * _count_common(chain, known))
        return PromptTraits(
            head_hash=self._hash(prompt[:_HEAD_TOKENS]),
            conversation=conversation,
            num_system_tokens=first_user,
            system_hash=None if first_user is None else self._hash(prompt[:first_user]),
            num_common_own=common[True],
            num_common_other=common[False],
        )

    def _find_turns(self, prompt: Sequence[int]) -> tuple[int | None, int]:
        """Give where the first user message begins and where it ends; None and the end without one."""
        if self._user_marker is None or self._user_marker not in prompt:
            return None, len(prompt)
        start = prompt.index(self._user_marker)
        ends = (i for i in range(start + 1, len(prompt)) if prompt[i] in self._role_markers)
        return start, next(ends, len(prompt))

    def _hash(self, token_ids: Sequence[int]) -> str:
        return self._digest(b"", token_ids).hex()

    def _hash_blocks(self, prompt: Sequence[int]) -> bytes:
        """Each digest covers its block and all before it, so that equal ones mean equal prefixes."""
        digests = [b""]
        for start in range(0, len(prompt) - BLOCK_TOKENS + 1, BLOCK_TOKENS):
            digests.append(self._digest(digests[-1], prompt[start : start + BLOCK_TOKENS]))
        return b"".join(digests)

    def _digest(self, before: bytes, token_ids: Sequence[int]) -> bytes:
        data = before + array("I", token_ids).tobytes()
        return hashlib.blake2b(data, digest_size=_DIGEST_BYTES, key=self._salt).digest()


def _count_common(one: bytes, other: bytes) -> int:
    """Give the number of blocks that two chains share, by halving: the digests of a chain agree up to some block."""
    low, high = 0, min(len(one), len(other)) // _DIGEST_BYTES
    while low < high:
        middle = (low + high + 1) // 2
        end = middle * _DIGEST_BYTES
        if one[end - _DIGEST_BYTES : end] == other[end - _DIGEST_BYTES : end]:
            low = middle
        else:
            high = middle - 1
    return low


def build_history(tokenizer: Tokenizer | None) -> PromptHistory:
    """Give an empty history that knows the tokenizer's markers of turns."""
    user = tokenizer.id_of("<|user|>") if tokenizer is not None else None
    markers = [tokenizer.id_of(text) for text in _ROLE_MARKERS] if tokenizer is not None else []
    return PromptHistory(user, frozenset(marker for marker in markers if marker is not None))
