"""Counting: which tokens of a reply are judged, and which chains of drafts end accepted."""

import numpy as np

from twinspark_demo.drafts.drafted import Drafted


def drafted(right: str, said: str, *drafts: str) -> Drafted:
    """Tokens as letters; a dot where nothing is drafted."""
    numbers = [np.array([-1 if letter == "." else ord(letter) for letter in text]) for text in (right, said, *drafts)]
    return Drafted(numbers[0], numbers[1], np.stack(numbers[2:]))


def counts(reply: Drafted) -> list[tuple[int, int]]:
    return [(reply.num_accepted(depth), reply.num_drafted(depth)) for depth in range(1, len(reply.drafts) + 1)]


def test_every_token_but_the_first_has_a_first_draft() -> None:
    reply = drafted("abcdef", "abcdef", ".bcdef", "..cdef", "...def")
    assert reply.is_right
    assert reply.judged == 6
    assert counts(reply) == [(5, 5), (4, 4), (3, 3)]


def test_a_draft_counts_only_behind_the_accepted_drafts_of_its_chain() -> None:
    # The first drafts of c and f are wrong, and the second draft of e.
    assert counts(drafted("abcdef", "abcdef", ".bXdeX", "..cdXf", "...def")) == [(3, 5), (2, 4), (1, 3)]


def test_a_chain_is_judged_step_by_step_at_its_own_places() -> None:
    only_second_wrong = drafted("abcde", "abcde", ".bcde", "..Xde", "...de")
    assert counts(only_second_wrong) == [(4, 4), (2, 3), (1, 2)]


def test_a_reply_is_cut_behind_the_first_wrong_token() -> None:
    reply = drafted("abcdef", "abXdYf", ".bXdef", "..Xdef", "...def")
    assert not reply.is_right
    assert reply.judged == 3
    assert counts(reply) == [(2, 2), (1, 1), (0, 0)]


def test_a_draft_of_the_right_token_is_not_accepted_where_the_model_says_another() -> None:
    assert counts(drafted("abc", "abX", ".bc", "..c")) == [(1, 2), (0, 1)]


def test_a_reply_that_is_wrong_at_once_has_no_drafts() -> None:
    reply = drafted("abc", "Xbc", ".bc", "..c", "...")
    assert reply.judged == 1
    assert counts(reply) == [(0, 0), (0, 0), (0, 0)]


def test_a_reply_shorter_than_a_chain_has_no_such_chain() -> None:
    assert counts(drafted("ab", "ab", ".b", "..", "..")) == [(1, 1), (0, 0), (0, 0)]
