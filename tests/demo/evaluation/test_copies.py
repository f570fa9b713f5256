"""Texts to copy: three sorts in their shares, 60 words at most, and some that are themselves requests."""

import random
import re
from collections import Counter

from twinspark_demo.evaluation import words
from twinspark_demo.evaluation.drawing import draw_prompts
from twinspark_demo.evaluation.english_text import PLAIN_FRAMES, REQUEST_FRAMES, filled

COUNT = 600


def pattern(frames: tuple[str, ...]) -> str:
    """Any of the sentences with its places filled; a full stop may be missing."""
    escaped = (re.escape(frame).replace(r"\ a\ ", r"\ an?\ ") for frame in frames)
    texts = (re.sub(r"\\\{\w+\\\}", r"[\\w: ]+", text) for text in escaped)
    return "|".join(f"{text}?" if text.endswith(".") else text for text in texts)


REQUEST, PLAIN = pattern(REQUEST_FRAMES), pattern(PLAIN_FRAMES)


def sort_of(text: str) -> str:
    if " " not in text and re.fullmatch("[a-z0-9]{4,8}|[A-Z0-9]{4,8}", text):
        return "code"
    if re.fullmatch(rf"(?:(?:{PLAIN}|{REQUEST})(?: |$))+", text):
        return "request" if re.search(rf"(?:^|[.?!] )(?:{REQUEST})(?: |$)", text) else "plain"
    return "mixed"


def copied(seed: int = 1) -> list[str]:
    return [prompt.expected for prompt in draw_prompts("copy", COUNT, seed)]


def test_a_sixth_are_codes_a_third_sentences_of_which_half_are_requests() -> None:
    shares = Counter(map(sort_of, copied()))
    # A single word of letters counts as a code: a sixtieth of half.
    assert COUNT / 6 * 0.75 < shares["code"] < COUNT / 6 * 1.3
    assert COUNT / 6 * 0.75 < shares["request"] < COUNT / 6 * 1.25
    assert COUNT / 6 * 0.75 < shares["plain"] < COUNT / 6 * 1.25
    assert COUNT / 2 * 0.85 < shares["mixed"] < COUNT / 2 * 1.15


def test_no_text_is_longer_than_60_words_and_some_are_nearly() -> None:
    lengths = [len(text.split()) for text in copied()]
    assert min(lengths) == 1 and 55 < max(lengths) <= 60


def test_four_of_the_longest_sentences_are_no_more_than_60_words() -> None:
    longest = 0
    rng = random.Random(4)
    for frame in (*PLAIN_FRAMES, *REQUEST_FRAMES):
        longest = max(longest, *(len(filled(rng, (frame,)).split()) for _ in range(60)))
    assert 13 <= longest <= 15


def test_50_prompts_of_any_seed_hold_requests_and_every_sort() -> None:
    for seed in range(5):
        sorts = {sort_of(prompt.expected) for prompt in draw_prompts("copy", 50, seed)}
        assert sorts == {"code", "request", "plain", "mixed"}


def test_every_sentence_occurs_and_texts_are_fresh_with_each_seed() -> None:
    drawn = copied(1) + copied(2) + copied(3)
    for frame in (*PLAIN_FRAMES, *REQUEST_FRAMES):
        assert any(re.search(pattern((frame,)), text) for text in drawn), frame
    first, second = ({text for text in copied(seed) if " " in text} for seed in (1, 2))
    assert len(first & second) <= 5  # "Tell me a joke." and the like have no places


def test_sentences_are_one_to_four_with_a_capital_and_a_mark_or_an_open_end() -> None:
    texts = [text for text in copied() if sort_of(text) in ("request", "plain")]
    counts = Counter(len(re.findall(r"[.?!](?: |$)|[^.?!]$", text)) for text in texts)
    assert set(counts) == {1, 2, 3, 4}
    assert all(text[0].isupper() for text in texts)
    open_ended = sum(text[-1] not in ".?!" for text in texts)
    assert 0 < open_ended < len(texts) / 5
    assert not any(mark in text for text in texts for mark in "{}")
    assert any(" an " in text for text in texts) and not any(re.search(r"\ba [aeio]", text) for text in texts)


def test_a_quarter_of_the_words_begin_with_a_capital() -> None:
    listed = set(words.ENGLISH)
    mixed = [word for text in copied() if sort_of(text) == "mixed" for word in text.split()]
    english = [word for word in mixed if len(word) > 2 and word.lower() in listed and word[1:].islower()]
    assert len(english) > 2000
    assert 0.22 < sum(word[0].isupper() for word in english) / len(english) < 0.28
