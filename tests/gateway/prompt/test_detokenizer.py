"""Text that arrives in parts of bytes."""

from hypothesis import given
from hypothesis import strategies as st

from twinspark_gateway.prompt.detokenizer import Detokenizer


def cut(data: bytes, lengths: list[int]) -> list[bytes]:
    """Cut data into parts of the given lengths, the rest last."""
    parts, start = [], 0
    for length in lengths:
        parts.append(data[start : start + length])
        start += length
    return [*parts, data[start:]]


@given(st.text(), st.lists(st.integers(1, 3)))
def test_any_cut_of_a_text_gives_the_text(text: str, lengths: list[int]) -> None:
    detokenizer = Detokenizer()
    parts = [detokenizer.feed(part) for part in cut(text.encode(), lengths)]
    assert "".join(parts) == text


@given(st.binary(), st.lists(st.integers(1, 3)))
def test_bytes_that_are_no_text_become_replacement_characters_however_they_are_cut(
    data: bytes, lengths: list[int]
) -> None:
    whole, parts = Detokenizer(), Detokenizer()
    text = whole.feed(data)
    assert "".join(parts.feed(part) for part in cut(data, lengths)) == text
    assert text + whole.finish() == data.decode(errors="replace")


def test_a_character_is_held_until_its_last_byte() -> None:
    detokenizer = Detokenizer()
    assert [detokenizer.feed(bytes([byte])) for byte in "😀".encode()] == ["", "", "", "😀"]


def test_a_byte_that_can_no_longer_become_a_character_does_not_block_the_text() -> None:
    detokenizer = Detokenizer()
    assert detokenizer.feed(b"\xe2\x82") == ""
    assert detokenizer.feed(b"a") == "\ufffda"
