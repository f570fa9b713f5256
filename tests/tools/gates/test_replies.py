"""What the gates call equal, and what they say of a difference."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from twinspark_tools.gates.outcome import Verdict
from twinspark_tools.gates.replies import Comparison, Reply, ReplyParts, Scored, find_difference

REPLY = Reply((5, 6), (Scored("a", -0.5, (("a", -0.5), ("b", -1.0))), Scored("b", -0.25, ())), "length")


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (replace(REPLY, token_ids=(5, 7)), "output token 1 is 7, not 6"),
        (replace(REPLY, token_ids=(5,)), "output token 1 is missing, not 6"),
        (replace(REPLY, token_ids=(5, 6, 8)), "output token 2 is 8, not missing"),
        (replace(REPLY, finish_reason="stop"), "it ended with stop, not length"),
    ],
)
def test_the_first_difference_is_said_in_words(found: Reply, said: str) -> None:
    assert find_difference(REPLY, found) == said


def test_the_last_bit_of_a_log_probability_is_a_difference() -> None:
    one, last = REPLY.scores
    for changed in (replace(last, logprob=-0.25000000000000006), replace(last, top=(("b", -2.0),))):
        said = find_difference(REPLY, replace(REPLY, scores=(one, changed)))
        assert said is not None
        assert said.startswith("log probabilities at 1 are Scored(")


def test_equal_replies_have_no_difference() -> None:
    assert find_difference(REPLY, replace(REPLY)) is None


def test_a_comparison_passes_fails_and_never_passes_without_a_pair() -> None:
    compared = Comparison()
    assert compared.outcome("pairs").verdict is Verdict.FAILED
    compared.add("one", REPLY, REPLY)
    assert (compared.outcome("pairs are equal").verdict, compared.outcome("pairs are equal").detail) == (
        Verdict.PASSED,
        "1 pairs are equal",
    )
    compared.add("two", REPLY, replace(REPLY, token_ids=(9, 6)))
    compared.add("three", REPLY, replace(REPLY, token_ids=()))
    outcome = compared.outcome("pairs are equal")
    assert outcome.verdict is Verdict.FAILED
    assert outcome.detail == "2 of 3 differ; two: output token 0 is 9, not 5"


def test_the_parts_of_a_stream_add_up_to_the_whole_reply() -> None:
    def choice(ids: list[int], tokens: list[str], finish: str | None = None) -> SimpleNamespace:
        top = [{"z": -3.0, "a": -1.0}] * len(tokens)
        logprobs = SimpleNamespace(tokens=tokens, token_logprobs=[-1.0] * len(tokens), top_logprobs=top)
        return SimpleNamespace(token_ids=ids, logprobs=logprobs if tokens else None, finish_reason=finish)

    whole, streamed = ReplyParts(), ReplyParts()
    whole.add(choice([1, 2], ["x", "y"], "stop"))
    for part in (choice([1], ["x"]), choice([2], ["y"]), choice([], [], "stop")):
        streamed.add(part)
    assert streamed.build() == whole.build()
    assert streamed.build().scores[0].top == (("a", -1.0), ("z", -3.0))
