"""Rounds: how many of a reply's tokens each one keeps."""

import pytest

from twinspark_demo.drafter.drafting import kept_each_round


def kept(said: str, drafts: dict[int, str]) -> list[int]:
    """Tokens as letters; drafts by the place of the pending token, elsewhere nothing right."""
    behind = [[ord(letter) for letter in drafts.get(place, "").ljust(7, "?")] for place in range(len(said))]
    return kept_each_round([ord(letter) for letter in said], behind)


@pytest.mark.parametrize(
    ("said", "drafts", "expected"),
    [
        ("abcdefghijkl", {}, [1] * 11),
        ("abcdefghijkl", {0: "bcdefgh", 8: "jkl"}, [8, 3]),  # eight with the target's own token; then to the end
        ("abcdefghijkl", {0: "bcX", 3: "efg", 7: "X", 8: "jk"}, [3, 4, 1, 3]),
        ("abcdefghijkl", {0: "Xcdefgh", 1: "cdefghi", 9: "kl"}, [1, 8, 2]),
        ("abcd", {0: "Xbcd"}, [1, 1, 1]),  # nothing behind a wrong draft counts
        ("abc", {0: "bc"}, [2]),
        ("abc", {0: "b"}, [2]),
        ("a", {0: "bcdefgh"}, []),
    ],
)
def test_a_round_keeps_right_drafts_and_one_token_more(said: str, drafts: dict[int, str], expected: list[int]) -> None:
    assert kept(said, drafts) == expected
    assert sum(expected) == len(said) - 1
