"""The seed of a request: given, or derived from its prompt, so that the same conversation gets the same reply."""

import hashlib
from collections.abc import Sequence

SEED_RANGE = 1 << 64


def seed_for(prompt_token_ids: Sequence[int], salt: int) -> int:
    """Derived seed, 0 to 2^63 - 1.

    The first 8 bytes, little-endian, without the top bit, of SHA-256 over the decimal ids joined by commas, a bar, and
    the salt. The salt is the deployment's, never the tenant's.
    """
    text = ",".join(map(str, prompt_token_ids)) + f"|{salt}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") & ((1 << 63) - 1)


def final_seed(base: int, offset: int) -> int:
    """The seed that keys the draw: base plus the index of the choice, modulo 2^64; a negative base too."""
    return (base + offset) % SEED_RANGE
