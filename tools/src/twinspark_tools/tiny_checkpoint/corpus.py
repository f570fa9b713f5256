"""The text on which the tokenizer is trained: written here or generated, so that nothing has to be downloaded."""

import random
from collections.abc import Iterator
from importlib import resources

WORDS = resources.files("twinspark_tools.tiny_checkpoint").joinpath("words.txt").read_text(encoding="utf-8").split()

ENDINGS = ("", "", "", "s", "ed", "ing", "er", "ly", "ness", "able", "ment", "tion")
SYLLABLES = (
    "ba",
    "co",
    "di",
    "fu",
    "ga",
    "ho",
    "ji",
    "ka",
    "lo",
    "mi",
    "ne",
    "po",
    "qui",
    "ra",
    "su",
    "ta",
    "ve",
    "wo",
    "xi",
    "zu",
)
FOREIGN = (
    "für",
    "über",
    "café",
    "naïve",
    "señor",
    "łódź",
    "привет",
    "мир",
    "你好",
    "世界",
    "こんにちは",
    "안녕",
    "🙂",
    "🚀",
    "€",
    "…",
)
TEMPLATES = (
    '{{"name": "{a}", "arguments": {{"{b}": "{c}", "count": {n}}}}}\n',
    "def {a}_{b}({c}: int) -> str:\n    return str({c} + {n})\n\n",
    "{A} {b} {c}, {a} {b}; {c}: {n}.\n",
    '"{A} {b}?" said the {c}. "{A} {n} {b}!"\n\n',
    "- {a} `{b}` ({c})\n- {n} % of {a}-{b}\n",
    "https://{a}.example/{b}?{c}={n}\n",
    "for {a} in range({n}):\n        {b}.append({c}[{a}])\n",
)


def training_text(lines: int = 6000, seed: int = 7) -> Iterator[str]:
    """Lines of words, invented words, foreign words, code, JSON and punctuation."""
    rng = random.Random(seed)
    for _ in range(lines):
        a, b, c = (_word(rng) for _ in range(3))
        template = rng.choice(TEMPLATES)
        yield template.format(a=a, b=b, c=c, A=a.capitalize(), n=rng.randrange(1000))


def _word(rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.1:
        return rng.choice(FOREIGN)
    if kind < 0.3:
        return "".join(rng.choice(SYLLABLES) for _ in range(rng.randrange(2, 5)))
    return rng.choice(WORDS) + rng.choice(ENDINGS)
