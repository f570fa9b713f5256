"""A byte-level BPE tokenizer of GLM's size, generated: as many tokens, as long, with the same added ones.

Every token is a shorter one and a byte, so the merges follow from the tokens. Words, punctuation, blanks, line ends and
other scripts are there in about the shares that large vocabularies have.
"""

import random
from collections.abc import Iterator

from tokenizers import AddedToken, Regex, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE

from twinspark_grammar.vocabulary import byte_of_character
from twinspark_tools.tiny_checkpoint.special_tokens import SPECIAL_TOKENS
from twinspark_tools.tiny_checkpoint.tokenizer import PIECES

NUM_TOKENS = 154_856
"""Added ones included; GLM-5.3-Flash has 154,880 rows for them."""
PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
LETTERS = "eeeeetttaaaooiinnsshhrrddllcumwfgypbvkjxqz"
SCRIPTS = ((0x4E00, 0x9FA5, 3), (0x0430, 0x044F, 8), (0x3041, 0x3096, 4), (0xAC00, 0xD7A3, 3), (0x0627, 0x064A, 7))
"""First and last letter of other scripts, and most letters of a word."""


def large_tokenizer_json() -> str:
    """tokenizer.json, the same in every run."""
    spelling = {byte: char for char, byte in byte_of_character().items()}
    vocabulary = {spelling[byte]: byte for byte in range(256)}
    merges: list[tuple[str, str]] = []
    target = NUM_TOKENS - len(SPECIAL_TOKENS)
    for word in _words():
        spelled = "".join(spelling[byte] for byte in word.encode())
        for end in range(2, len(spelled) + 1):
            if spelled[:end] not in vocabulary and len(vocabulary) < target:
                merges.append((spelled[: end - 1], spelled[end - 1]))
                vocabulary[spelled[:end]] = len(vocabulary)
        if len(vocabulary) == target:
            break
    tokenizer = Tokenizer(BPE(vocab=vocabulary, merges=merges))
    split = pre_tokenizers.Split(Regex(PIECES), behavior="isolated")
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, byte_level])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_tokens([AddedToken(token, special=special, normalized=False) for token, special in SPECIAL_TOKENS])
    text: str = tokenizer.to_str()
    return text


def _words() -> Iterator[str]:
    """Endless: what tokens are made of."""
    draw = random.Random(0)
    while True:
        kind = draw.random()
        if kind < 0.7:
            word = "".join(draw.choice(LETTERS) for _ in range(min(14, 2 + int(draw.expovariate(0.25)))))
            yield draw.choice(("", " ", " ", " ")) + draw.choice((word, word, word, word.capitalize(), word.upper()))
        elif kind < 0.8:
            yield draw.choice(("", " ")) + "".join(draw.choice(PUNCTUATION) for _ in range(draw.randint(1, 4)))
        elif kind < 0.82:
            yield draw.choice(" \n\t\r") * draw.randint(1, 32)
        else:
            first, last, most = draw.choice(SCRIPTS)
            yield "".join(chr(draw.randint(first, last)) for _ in range(draw.randint(1, most)))
