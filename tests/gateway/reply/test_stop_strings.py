"""Stop strings against their definition."""

from hypothesis import example, given
from hypothesis import strategies as st

from twinspark_gateway.reply.stop_strings import StopStrings

ALPHABET = "aé"
TOKENS = st.lists(st.text(ALPHABET, max_size=4), max_size=12)
STOPS = st.lists(st.text(ALPHABET, max_size=5), max_size=4)


def define(tokens: list[str], stops: list[str], min_tokens: int) -> tuple[str, int]:
    """Give the visible text and the number of tokens, straight from the definition."""
    for count in range(min_tokens + 1, len(tokens) + 1):
        text, num_before = "".join(tokens[:count]), len("".join(tokens[: count - 1]))
        starts = [
            start
            for stop in stops
            for start in range(len(text))
            if stop and text.startswith(stop, start) and start + len(stop) > num_before
        ]
        if starts:
            return text[: min(starts)], count
    return "".join(tokens), len(tokens)


@given(TOKENS, STOPS, st.sampled_from([0, 0, 1, 2, 5]))
@example(["aa", "aé"], ["aaé"], 0)
@example(["aéaéaé", "a"], ["aéaéa"], 0)
@example(["aa", "a"], ["aa"], 1)
@example(["aéaé", "aé"], ["aéaé"], 1)
def test_text_and_count_are_those_of_the_definition(tokens: list[str], stops: list[str], min_tokens: int) -> None:
    matcher, text, count = StopStrings(stops), "", 0
    for token in tokens:
        count += 1
        text += matcher.feed(token, may_match=count > min_tokens)
        if matcher.matched is not None:
            break
    else:
        text += matcher.flush()
    assert (text, count) == define(tokens, stops, min_tokens)


@given(TOKENS, STOPS)
def test_exactly_the_longest_proper_prefix_of_a_stop_string_is_held(tokens: list[str], stops: list[str]) -> None:
    matcher, given_text, released = StopStrings(stops), "", ""
    for token in tokens:
        given_text += token
        released += matcher.feed(token)
        if matcher.matched is not None:
            return
        prefixes = [stop[:length] for stop in stops for length in range(1, len(stop))]
        longest = max((len(prefix) for prefix in prefixes if given_text.endswith(prefix)), default=0)
        assert released == given_text[: len(given_text) - longest]


def test_of_two_that_end_in_one_token_the_one_that_starts_first_wins() -> None:
    matcher = StopStrings(["cd", "bcde"])
    assert matcher.feed("a") == "a"
    assert matcher.feed("bcdef") == ""
    assert matcher.matched == "bcde"


def test_one_that_is_complete_in_an_earlier_token_wins() -> None:
    matcher = StopStrings(["abc", "b"])
    assert matcher.feed("ab") == "a"
    assert matcher.matched == "b"
