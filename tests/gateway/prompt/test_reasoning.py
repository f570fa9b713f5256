"""The split of a reply by token id."""

from twinspark_gateway.prompt.reasoning import Part, ReasoningSplitter, ThinkTokens

OPEN, CLOSE = 1, 2
TOKENS = ThinkTokens(OPEN, CLOSE)


def split(prompt: list[int], output: list[int]) -> tuple[str, int]:
    """Give one letter for each token's part, and the count of reasoning tokens."""
    splitter = ReasoningSplitter(TOKENS, prompt)
    letters = {Part.REASONING: "r", Part.ANSWER: "a", Part.MARKUP: "m"}
    return "".join(letters[splitter.place(token)] for token in output), splitter.num_reasoning_tokens


def test_a_reply_to_an_open_prompt_starts_inside_the_reasoning_and_counts_its_closing_token() -> None:
    assert split([9, OPEN], [7, 8, CLOSE, 7, 8]) == ("rrmaa", 3)


def test_a_reply_that_is_never_closed_is_all_reasoning() -> None:
    assert split([9, OPEN], [7, 8]) == ("rr", 2)


def test_a_reply_to_a_closed_prompt_is_all_answer() -> None:
    assert split([9, OPEN, CLOSE], [7, 8]) == ("aa", 0)


def test_a_reply_that_opens_reasoning_by_itself_is_split_all_the_same() -> None:
    assert split([9, OPEN, CLOSE], [OPEN, 7, CLOSE, 8]) == ("mrma", 3)


def test_think_tokens_after_the_split_are_dropped_and_never_split_again() -> None:
    assert split([9, OPEN], [7, CLOSE, 8, CLOSE, 8, OPEN, 8, CLOSE, 8]) == ("rmamamama", 2)
    assert split([9, OPEN, CLOSE], [8, OPEN, 7]) == ("ama", 0)


def test_an_opening_token_inside_the_reasoning_has_no_text() -> None:
    assert split([9, OPEN], [7, OPEN, 7, CLOSE, 8]) == ("rmrma", 4)


def test_without_think_tokens_everything_is_answer() -> None:
    splitter = ReasoningSplitter(None, [OPEN])
    assert [splitter.place(token) for token in (OPEN, CLOSE, 7)] == [Part.ANSWER] * 3
