"""Penalties, logit_bias, log probabilities, min_tokens, stop ids and echo of two real ranks through the openai client.

Every request is sent to both endpoints, whole and streamed, and all four are compared.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import openai
import pytest

from twinspark_tools.tiny_checkpoint import SHAPES

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PROMPT = [(37 * place + 11) % 1000 for place in range(70)]
# Body fields that the client has no parameter for.
EXTRA = ("repetition_penalty", "min_tokens", "stop_token_ids", "ignore_eos", "thinking")
FORCED = 97


@dataclass
class Said:
    """A reply, whichever way it came."""

    text: str = ""
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[Any] = field(default_factory=list)
    finish: str | None = None
    stop_reason: Any = None
    num_tokens: int | None = None

    def add(self, choice: Any, text: str) -> None:
        self.text += text
        self.token_ids += getattr(choice, "token_ids", None) or []
        self.finish = choice.finish_reason or self.finish
        self.stop_reason = getattr(choice, "stop_reason", None) or self.stop_reason


class Asker:
    """Asks both endpoints, whole or streamed."""

    def __init__(self, client: openai.OpenAI, model: str) -> None:
        self._client, self._model = client, model

    def both(self, kind: str, **params: Any) -> Said:
        """The whole reply, which the streamed one must equal."""
        whole, streamed = (self.one(kind, stream=stream, **params) for stream in (False, True))
        assert streamed == whole
        return whole

    def one(self, kind: str, *, stream: bool = False, **params: Any) -> Said:
        extra = {name: params.pop(name) for name in EXTRA if name in params}
        asked: dict[str, Any] = {"model": self._model, "extra_body": extra | {"return_token_ids": True}, **params}
        if stream:
            asked |= {"stream": True, "stream_options": {"include_usage": True}}
        create: Any = self._client.completions.create
        if kind == "chat":
            create, asked["messages"] = self._client.chat.completions.create, [{"role": "user", "content": "Hello"}]
        else:
            asked.setdefault("prompt", PROMPT)
        said = Said()
        for part in create(**asked) if stream else [create(**asked)]:
            if part.usage is not None:
                said.num_tokens = part.usage.completion_tokens
            for choice in part.choices:
                self._add(said, kind, choice, stream)
        return said

    @staticmethod
    def _add(said: Said, kind: str, choice: Any, stream: bool) -> None:
        if kind == "completion":
            said.add(choice, choice.text)
            found = choice.logprobs
            lists = (found.tokens, found.token_logprobs, found.top_logprobs, found.text_offset) if found else ()
            said.logprobs += zip(*lists, strict=True) if lists else []
            return
        message = choice.delta if stream else choice.message
        said.add(choice, (getattr(message, "reasoning_content", None) or "") + (message.content or ""))
        said.logprobs += (choice.logprobs.content or []) if choice.logprobs else []


@pytest.fixture
def ask(client: openai.OpenAI, model: str) -> Asker:
    return Asker(client, model)


kinds = pytest.mark.parametrize("kind", ["chat", "completion"])


@kinds
def test_a_bias_of_100_forces_a_token_and_one_of_minus_100_forbids_it(ask: Asker, kind: str) -> None:
    forced = ask.both(kind, max_tokens=6, temperature=1.5, logit_bias={str(FORCED): 100})
    assert (forced.token_ids, forced.finish, forced.num_tokens) == ([FORCED] * 6, "length", 6)
    free = ask.both(kind, max_tokens=6, temperature=0, ignore_eos=True)
    repelled = ask.both(
        kind, max_tokens=6, temperature=0, ignore_eos=True, logit_bias={str(i): -100 for i in free.token_ids}
    )
    assert not set(free.token_ids) & set(repelled.token_ids)


@kinds
def test_a_token_that_costs_more_each_time_gives_way_to_the_next(ask: Asker, kind: str) -> None:
    asked: dict[str, Any] = {"max_tokens": 24, "temperature": 0}
    asked["logit_bias"] = {str(FORCED): 100.0, str(FORCED + 1): 85.0}
    plain = ask.both(kind, **asked)
    assert set(plain.token_ids) == {FORCED}
    frequent = ask.both(kind, frequency_penalty=2, **asked)
    assert frequent.token_ids[0] == FORCED
    assert set(frequent.token_ids) == {FORCED, FORCED + 1}
    # Once is not enough for the second to win; nothing at all is what 0 asks for.
    assert ask.both(kind, presence_penalty=2, **asked) == plain
    assert ask.both(kind, presence_penalty=0, frequency_penalty=0, repetition_penalty=1, **asked) == plain


def test_the_repetition_penalty_counts_the_prompt_and_the_others_do_not(ask: Asker) -> None:
    greedy: dict[str, Any] = {"max_tokens": 1, "temperature": 0, "ignore_eos": True}
    first = ask.one("completion", **greedy).token_ids
    with_it = {"prompt": [*PROMPT, *first], **greedy}
    for name in ("presence_penalty", "frequency_penalty"):
        assert ask.both("completion", **with_it, **{name: 2.0}) == ask.both("completion", **with_it)
    repelled = ask.both("completion", **with_it | {"max_tokens": 20}, repetition_penalty=1e9).token_ids
    assert len({*repelled, *PROMPT, *first}) == 20 + len({*PROMPT, *first})


@kinds
def test_end_tokens_and_stop_ids_wait_for_min_tokens_and_have_no_text(ask: Asker, kind: str) -> None:
    for min_tokens in (0, 1, 7):
        said = ask.both(
            kind,
            max_tokens=20,
            min_tokens=min_tokens,
            stop_token_ids=[FORCED],
            ignore_eos=True,
            logit_bias={str(FORCED): 100},
        )
        assert (said.token_ids.index(FORCED), said.num_tokens) == (min_tokens, min_tokens + 1)
        assert (said.finish, said.stop_reason) == ("stop", FORCED)
        assert said.text or min_tokens < 2


def test_chat_logprobs_come_with_their_text_and_describe_the_raw_distribution(ask: Asker) -> None:
    asked: dict[str, Any] = {"thinking": False, "max_tokens": 12, "temperature": 0, "ignore_eos": True}
    said = ask.both("chat", logprobs=True, top_logprobs=5, **asked)
    assert said.logprobs
    for entry in said.logprobs:
        values = [top.logprob for top in entry.top_logprobs]
        assert len(values) == 5
        assert values == sorted(values, reverse=True)
    first = said.logprobs[0]
    bias = {"logit_bias": {str(FORCED): 100}, "frequency_penalty": 1.0}
    moved = ask.both("chat", logprobs=True, top_logprobs=5, **asked, **bias).logprobs[0]
    assert moved.top_logprobs == first.top_logprobs
    assert moved.logprob < first.logprob
    assert all(not entry.top_logprobs for entry in ask.both("chat", logprobs=True, **asked).logprobs)
    assert not ask.both("chat", **asked).logprobs


def test_echo_lists_prompt_and_output_and_scores_the_prompt_alone_with_no_output(ask: Asker) -> None:
    asked: dict[str, Any] = {"echo": True, "logprobs": 3, "temperature": 0, "ignore_eos": True}
    said = ask.both("completion", max_tokens=4, presence_penalty=1.0, **asked)
    assert len(said.logprobs) == len(PROMPT) + 4
    assert said.logprobs[0][1:3] == (None, None)
    offsets = [offset for *_, offset in said.logprobs]
    assert offsets == sorted(offsets)
    assert offsets[-1] <= len(said.text)
    alone = ask.both("completion", max_tokens=0, **asked)
    assert alone.logprobs == said.logprobs[: len(PROMPT)]
    assert said.text.startswith(alone.text)
    assert (alone.token_ids, alone.finish, alone.num_tokens) == ([], "length", 0)
    bare = ask.both("completion", max_tokens=0, echo=True)
    assert (bare.text, bare.logprobs) == (alone.text, [])


@kinds
def test_requests_with_penalties_answer_together_as_alone(ask: Asker, kind: str) -> None:
    # Ten ids far above the others, which therefore come again and again.
    base = {"max_tokens": 24, "temperature": 0, "logit_bias": {str(i): 20 for i in range(50, 60)}}
    changes: list[dict[str, Any]] = [
        {},
        {"repetition_penalty": 3.0},
        {"frequency_penalty": 1.5},
        {"presence_penalty": -1.0, "temperature": 1, "top_p": 0.8},
        {"presence_penalty": 2.0},
        {"frequency_penalty": -0.5, "repetition_penalty": 1.1, "temperature": 0.7, "seed": 3, "min_tokens": 10},
    ]
    asked = [base | change for change in changes]
    alone = [ask.both(kind, **params) for params in asked]
    assert all(said.token_ids != alone[0].token_ids for said in alone[1:])
    with ThreadPoolExecutor(len(asked)) as pool:
        together = list(pool.map(lambda params: ask.one(kind, **params), asked))
    assert together == alone


@kinds
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("presence_penalty", 2.1),
        ("frequency_penalty", -2.1),
        ("repetition_penalty", 0),
        ("logit_bias", {"1": 101}),
        ("logit_bias", {"9999999": 1}),
        ("logit_bias", {"one": 1}),
        ("min_tokens", 9),
        ("stop_token_ids", [9_999_999]),
    ],
)
def test_a_value_out_of_range_is_a_400_that_names_the_field(ask: Asker, kind: str, name: str, value: Any) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        ask.one(kind, max_tokens=8, **{name: value})
    assert caught.value.param == name
    assert name in caught.value.message


def test_min_tokens_whose_stop_ids_leave_no_token_are_refused_and_the_engine_serves_on(ask: Asker) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        ask.one("completion", max_tokens=8, min_tokens=1, stop_token_ids=list(range(SHAPES["tiny"].vocab_size)))
    assert caught.value.param == "min_tokens"
    assert ask.one("completion", max_tokens=2, ignore_eos=True).num_tokens == 2
