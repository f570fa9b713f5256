"""A thinking budget: where it closes the reasoning, what the second call of the engine is, and what a reply then is."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.scripted_engine import EOS, ScriptedEngine
from support.scripts import USER, encode
from twinspark_gateway.generation import Generation, Grammar, GrammarKind, Sampling
from twinspark_gateway.prompt.tokenizer import Tokenizer
from twinspark_gateway.reply.chat_reader import ChatReader
from twinspark_gateway.reply.choice import Choice, Delta, Ended, Started
from twinspark_gateway.reply.thinking_budget import build_budget
from twinspark_gateway.reply.usage import Usage

PROMPT = (278, 283)
CLOSING = encode("\n</think>\n\n")
CLOSE = 284
SAMPLING = Sampling(seed=5, frequency_penalty=0.5, logit_bias={3: 1.0})


@dataclass
class Outcome:
    """What a choice gave, added up."""

    reasoning: str = ""
    content: str = ""
    listed: list[int] = field(default_factory=list)
    token_ids: list[int] = field(default_factory=list)
    num_started: int = 0
    ended: Ended | None = None

    @property
    def end(self) -> tuple[str, str | int | None, Usage]:
        """How it ended."""
        assert self.ended is not None
        return self.ended.finish_reason, self.ended.stop_reason, self.ended.usage


async def run(
    tokenizer: Tokenizer, engine: ScriptedEngine, budget: int, max_tokens: int = 1000, stops: Sequence[str] = ()
) -> Outcome:
    """Run one choice."""
    generation = Generation("r", PROMPT, max_tokens, SAMPLING, seed_offset=2, num_top_logprobs=0)
    reader = ChatReader(tokenizer, PROMPT, stops, skip_special_tokens=True, eos_token_ids=EOS)
    choice = Choice(0, generation, reader, EOS, build_budget(budget, tokenizer))
    outcome = Outcome()
    async for message in choice.run(engine):
        if isinstance(message, Delta):
            outcome.reasoning += message.reasoning
            outcome.content += message.content
            outcome.listed += [entry.token_id for entry in message.logprobs]
            outcome.token_ids += message.token_ids
            assert message.usage.completion_tokens == len(outcome.token_ids)
        elif isinstance(message, Started):
            outcome.num_started += 1
        elif isinstance(message, Ended):
            assert outcome.ended is None
            outcome.ended = message
    return outcome


def cut_up(ids: Sequence[int], sizes: Sequence[int]) -> list[list[int]]:
    """Group ids into steps of these sizes, then of one."""
    steps, rest = [], list(ids)
    for size in sizes:
        steps.append(rest[:size])
        rest = rest[size:]
    return [step for step in [*steps, *([token] for token in rest)] if step]


def closed_by_hand(reply: list[int], answer: list[int], budget: int, max_tokens: int) -> list[int]:
    """Give the tokens of the reply as the rule says, from nothing but the ids."""
    is_spent = budget < max_tokens and budget <= len(reply) and reply[budget - 1] not in (CLOSE, *EOS)
    if not is_spent or CLOSE in reply[:budget]:
        return reply[:max_tokens]
    return [*reply[: budget - 1], *CLOSING, *answer][:max_tokens]


@dataclass(frozen=True)
class Script:
    """What a model says: first, and once its reasoning was closed; and how its steps cut it."""

    reply: list[int]
    answer: list[int]
    sizes: list[int]
    later_sizes: list[int]

    def engine(self) -> ScriptedEngine:
        """Give an engine that says it."""
        return ScriptedEngine(cut_up(self.reply, self.sizes), cut_up(self.answer, self.later_sizes))


def text(*words: str, most: int) -> st.SearchStrategy[list[int]]:
    """Give ids of some of the words: characters are whole, so only a budget can cut one."""
    return st.lists(st.sampled_from(words), max_size=most).map(lambda chosen: encode("".join(chosen)))


THOUGHT = text("a", " b", "\n", "hello", "é", "😀", "<tool_call>", "f</tool_call>", most=5)
ANSWER = text("a", " b", "\n", "hello", "ö", "</think>", "<think>", most=5)
SIZES = st.lists(st.integers(1, 5), max_size=6)
SCRIPTS = st.builds(
    lambda thought, ending, end, answer, sizes, later: Script([*thought, *ending, *end], [*answer, USER], sizes, later),
    THOUGHT,
    st.just([]) | ANSWER.map(lambda ids: [CLOSE, *ids]),
    st.sampled_from([[], [USER]]),
    ANSWER,
    SIZES,
    SIZES,
)


@given(script=SCRIPTS, is_short=st.booleans(), stops=st.lists(st.sampled_from(["hello", "\n", "b"]), max_size=2))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
async def test_every_budget_gives_the_reply_that_its_tokens_spell(
    tokenizer: Tokenizer, script: Script, is_short: bool, stops: list[str]
) -> None:
    for budget in range(1, len(script.reply) + 2):
        limits = [max(1, budget + extra) for extra in (-1, 0, 1, 2, 3, 5)] if is_short else [1000]
        for max_tokens in limits:
            engine = script.engine()
            outcome = await run(tokenizer, engine, budget, max_tokens, stops)
            spelt = closed_by_hand(script.reply, script.answer, budget, max_tokens)
            # A model that writes all this by itself; half a character before the close is dropped.
            plain = await run(tokenizer, ScriptedEngine([spelt]), 0, max_tokens, stops)
            assert outcome.token_ids == plain.token_ids == spelt[: len(outcome.token_ids)]
            assert outcome.reasoning == plain.reasoning.replace("\ufffd", "")
            assert (outcome.content, outcome.listed, outcome.end) == (plain.content, plain.listed, plain.end)
            assert (outcome.num_started, outcome.end[2].prompt_tokens) == (1, len(PROMPT))
            assert outcome.end[2].cached_tokens == 1
            assert engine.was_closed


async def test_a_budget_that_is_not_reached_changes_nothing_and_asks_once(tokenizer: Tokenizer) -> None:
    reply = [*encode("hello</think>the a"), USER]
    num_reasoning = reply.index(CLOSE) + 1
    free = await run(tokenizer, ScriptedEngine([reply]), 0)
    for budget in range(num_reasoning, len(reply) + 2):
        engine = ScriptedEngine([reply])
        outcome = await run(tokenizer, engine, budget)
        assert (outcome.reasoning, outcome.content, outcome.end) == (free.reasoning, free.content, free.end)
        assert (outcome.listed, outcome.token_ids) == (free.listed, reply)
        assert outcome.ended is not None
        assert not outcome.ended.was_closed
        assert len(engine.generations) == 1


async def test_the_second_call_goes_on_with_the_same_seed_penalties_and_counts(tokenizer: Tokenizer) -> None:
    engine = ScriptedEngine([[token] for token in encode("bababa")], [encode("ok")])
    outcome = await run(tokenizer, engine, 4, max_tokens=50)
    kept = [*encode("bab"), *CLOSING]
    assert (outcome.reasoning, outcome.content) == ("bab\n", "ok")
    assert outcome.ended is not None
    assert outcome.ended.was_closed
    # Not a token more than the one that shows the budget is spent.
    assert engine.num_sent == 4 + 1
    first, second = engine.generations
    assert second == replace(
        first,
        request_id=second.request_id,
        prompt_token_ids=[*PROMPT, *kept],
        max_tokens=50 - len(kept),
        num_prior_output_tokens=len(kept),
    )
    assert second.request_id != first.request_id


async def test_a_stop_id_ends_the_reply_in_the_forced_close_too(tokenizer: Tokenizer) -> None:
    engine = ScriptedEngine([encode("baba")], [encode("ok")])
    reader = ChatReader(tokenizer, PROMPT, (), skip_special_tokens=True, eos_token_ids=EOS)
    generation = Generation("r", PROMPT, 50, stop_token_ids=[CLOSE])
    choice = Choice(0, generation, reader, EOS | {CLOSE}, build_budget(3, tokenizer))
    messages = [message async for message in choice.run(engine)]
    ended = messages[-1]
    assert isinstance(ended, Ended)
    assert (ended.finish_reason, ended.stop_reason, ended.usage.completion_tokens) == ("stop", CLOSE, 4)
    assert [i for message in messages if isinstance(message, Delta) for i in message.token_ids] == [
        *encode("ba"),
        *encode("\n"),
        CLOSE,
    ]
    assert len(engine.generations) == 1


async def test_a_grammar_that_waited_for_the_close_starts_at_once_after_it(tokenizer: Tokenizer) -> None:
    grammar = Grammar("h", GrammarKind.JSON_SCHEMA, "s", starts_after_thinking=True)
    engine = ScriptedEngine([encode("baba")], [encode("{}")])
    # Of a format's answer no blank is layout, but those of the close are none of it.
    reader = ChatReader(tokenizer, PROMPT, (), skip_special_tokens=True, eos_token_ids=EOS, is_exact=True)
    generation = Generation("r", PROMPT, 50, grammar=grammar)
    content = ""
    async for message in Choice(0, generation, reader, EOS, build_budget(2, tokenizer)).run(engine):
        content += message.content if isinstance(message, Delta) else ""
    assert content == "{}"
    assert [call.grammar for call in engine.generations] == [grammar, replace(grammar, starts_after_thinking=False)]


async def test_the_times_of_both_calls_add_up(tokenizer: Tokenizer) -> None:
    engine = ScriptedEngine([[token] for token in encode("baba")], [encode("ok"), [USER]], times=(0.5, 2.0, 3.0, 7))
    outcome = await run(tokenizer, engine, 3)
    assert outcome.ended is not None
    timings = outcome.ended.timings
    # The first call was cancelled: its wait is in its first message, its rounds are those that were seen.
    assert timings.queue_seconds == 0.25 + 0.5
    assert timings.prefill_seconds >= 2.0
    assert timings.decode_seconds >= 3.0
    assert timings.num_rounds == 2 + 7
    # The fake's caches hold one token of the first prompt and two of the second.
    assert timings.num_prefilled_tokens == (len(PROMPT) - 1) + (len(PROMPT) + 2 + len(CLOSING) - 2)
    assert timings.num_decoded_tokens == 2 + len(encode("ok"))


def test_without_reasoning_in_the_tokenizer_or_a_number_there_is_no_budget(tokenizer: Tokenizer) -> None:
    assert build_budget(0, tokenizer) is None
    budget = build_budget(7, tokenizer)
    assert budget is not None
    assert (budget.num_tokens, list(budget.closing_token_ids)) == (7, CLOSING)
