"""One choice: from the engine's steps to text, counts and log probabilities."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.scripted_engine import EOS, ScriptedEngine
from support.scripts import USER, encode
from twinspark_gateway.generation import Generation
from twinspark_gateway.prompt.tokenizer import Tokenizer
from twinspark_gateway.reply.chat_reader import ChatReader
from twinspark_gateway.reply.choice import Choice, Delta, Ended
from twinspark_gateway.reply.text_reader import CompletionReader, TextReader

OPEN_PROMPT = (278, 283)
CLOSED_PROMPT = (278, 283, 284)


@dataclass
class Outcome:
    """What a choice gave, added up."""

    reasoning: str = ""
    content: str = ""
    listed: list[int] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    token_ids: list[int] = field(default_factory=list)
    ended: Ended | None = None


async def run(steps: Sequence[Sequence[int]], reader: TextReader, engine: ScriptedEngine | None = None) -> Outcome:
    engine = engine or ScriptedEngine(steps)
    generation = Generation("r", OPEN_PROMPT, 100, num_top_logprobs=0)
    outcome = Outcome()
    async for message in Choice(0, generation, reader, EOS).run(engine):
        if isinstance(message, Delta):
            outcome.reasoning += message.reasoning
            outcome.content += message.content
            outcome.listed += [entry.token_id for entry in message.logprobs]
            outcome.offsets += [entry.offset for entry in message.logprobs]
            outcome.token_ids += message.token_ids
        elif isinstance(message, Ended):
            outcome.ended = message
    return outcome


def chat(tokenizer: Tokenizer, *stops: str, prompt: Sequence[int] = OPEN_PROMPT, skip: bool = True) -> ChatReader:
    return ChatReader(tokenizer, prompt, stops, skip_special_tokens=skip)


def group(ids: Sequence[int], sizes: Sequence[int]) -> list[list[int]]:
    """Group ids into steps."""
    steps, rest = [], list(ids)
    for size in sizes:
        steps.append(rest[:size])
        rest = rest[size:]
    steps += [[token] for token in rest]
    return [step for step in steps if step]


IDS = st.lists(st.sampled_from([*encode("a b\nhello the wörld 😀"), 278, 283, 284, 290]), max_size=30)


@given(ids=IDS, sizes=st.lists(st.integers(1, 5)), stops=st.lists(st.text("ab \nö", max_size=4), max_size=3))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
async def test_any_grouping_into_steps_gives_the_same_reply(
    tokenizer: Tokenizer, ids: list[int], sizes: list[int], stops: list[str]
) -> None:
    for prompt in (OPEN_PROMPT, CLOSED_PROMPT):
        one_by_one = await run(group(ids, []), chat(tokenizer, *stops, prompt=prompt))
        grouped = await run(group(ids, sizes), chat(tokenizer, *stops, prompt=prompt))
        assert one_by_one.ended is not None
        assert grouped.ended is not None
        assert (grouped.reasoning, grouped.content, grouped.listed, grouped.offsets, grouped.token_ids) == (
            one_by_one.reasoning,
            one_by_one.content,
            one_by_one.listed,
            one_by_one.offsets,
            one_by_one.token_ids,
        )
        assert grouped.ended.usage == one_by_one.ended.usage
        assert grouped.ended.finish_reason == one_by_one.ended.finish_reason


async def test_a_stop_string_counts_up_to_the_token_that_completed_it_and_closes_the_call(
    tokenizer: Tokenizer,
) -> None:
    ids = [*encode("</think>"), *encode("abcdef")]
    engine = ScriptedEngine([[token] for token in ids])
    outcome = await run([], chat(tokenizer, "cd"), engine)
    assert outcome.content == "ab"
    assert outcome.listed == encode("ab")
    assert outcome.ended is not None
    assert (outcome.ended.finish_reason, outcome.ended.stop_reason) == ("stop", "cd")
    assert outcome.ended.usage.completion_tokens == 5
    assert engine.num_sent == 5
    assert engine.was_closed


async def test_stop_strings_do_not_look_into_the_reasoning(tokenizer: Tokenizer) -> None:
    outcome = await run([[*encode("a\nb</think>\n\nc\nd"), USER]], chat(tokenizer, "\n"))
    assert (outcome.reasoning, outcome.content) == ("a\nb", "c")


async def test_a_held_prefix_is_text_when_the_reply_ends(tokenizer: Tokenizer) -> None:
    outcome = await run([[*encode("abab"), USER]], chat(tokenizer, "abc", prompt=CLOSED_PROMPT))
    assert outcome.content == "abab"
    assert outcome.listed == encode("abab")


async def test_an_incomplete_character_at_the_end_is_dropped_but_its_token_is_listed(tokenizer: Tokenizer) -> None:
    ids = encode("é")[:1]
    outcome = await run([ids], chat(tokenizer, prompt=CLOSED_PROMPT))
    assert outcome.content == ""
    assert outcome.listed == ids


async def test_a_character_split_by_the_end_of_the_reasoning_does_not_reach_the_answer(tokenizer: Tokenizer) -> None:
    outcome = await run([[*encode("é")[:1], *encode("</think>ok")]], chat(tokenizer))
    assert (outcome.reasoning, outcome.content) == ("", "ok")


async def test_the_assistants_marker_is_never_text(tokenizer: Tokenizer) -> None:
    ids = encode("a<|assistant|>b")
    for skip in (True, False):
        outcome = await run([ids], chat(tokenizer, prompt=CLOSED_PROMPT, skip=skip))
        assert outcome.content == "ab"


async def test_special_tokens_are_text_only_if_asked_for(tokenizer: Tokenizer) -> None:
    ids = encode("a<sop>b")
    assert (await run([ids], chat(tokenizer, prompt=CLOSED_PROMPT))).content == "ab"
    assert (await run([ids], chat(tokenizer, prompt=CLOSED_PROMPT, skip=False))).content == "a<sop>b"
    assert (await run([ids], CompletionReader(tokenizer, (), skip_special_tokens=True))).content == "ab"
    assert (await run([ids], CompletionReader(tokenizer, (), skip_special_tokens=False))).content == "a<sop>b"


async def test_chat_lists_the_answers_visible_tokens_only(tokenizer: Tokenizer) -> None:
    outcome = await run([[*encode("why</think>\n\nab"), USER]], chat(tokenizer))
    assert outcome.listed == encode("ab")
    assert outcome.token_ids == [*encode("why</think>\n\nab"), USER]


async def test_a_completion_lists_every_token_with_offsets_into_its_text(tokenizer: Tokenizer) -> None:
    ids = [*encode("a<think>é<sop>b"), USER]
    outcome = await run([ids], CompletionReader(tokenizer, (), skip_special_tokens=True))
    assert outcome.content == "a<think>éb"
    assert outcome.listed == ids
    assert outcome.offsets == [0, 1, 8, 8, 9, 9, 10]


async def test_an_end_token_has_no_text_and_counts(tokenizer: Tokenizer) -> None:
    outcome = await run([[*encode("ab"), USER]], chat(tokenizer, prompt=CLOSED_PROMPT, skip=False))
    assert outcome.content == "ab"
    assert outcome.ended is not None
    assert outcome.ended.usage.completion_tokens == 3
    assert (outcome.ended.finish_reason, outcome.ended.stop_reason) == ("stop", None)
