"""What every EngineService promises about a Generate stream."""

import asyncio
import itertools
import math
from typing import Any

import pytest

from support.engine_client import EngineClient, Reply
from twinspark.engine.v1 import engine_pb2 as pb

_ids = itertools.count()
PROMPT = [5, 17, 80, 3, 44]


def build(
    prompt: list[int] | None = None, *, max_tokens: int = 8, limits: Any = None, **fields: Any
) -> pb.GenerateRequest:
    """Build a request; end tokens are ignored unless limits says otherwise."""
    limits = {"ignore_eos": True} | (limits or {})
    return pb.GenerateRequest(
        request_id=f"contract-{next(_ids)}",
        prompt_token_ids=PROMPT if prompt is None else prompt,
        limits=pb.Limits(max_tokens=max_tokens, **limits),
        **fields,
    )


def kinds(reply: Reply) -> list[str | None]:
    """Give the kind of each message."""
    return [response.WhichOneof("event") for response in reply.responses]


def finished(reply: Reply) -> pb.Finished:
    """Give the last message."""
    assert reply.code == "OK", reply.status
    assert reply.finished is not None
    return reply.finished


def logprobs(reply: Reply) -> list[pb.TokenLogprobs]:
    """Give the entries of all output tokens."""
    return [entry for response in reply.responses for entry in response.step.logprobs]


def prompt_logprobs(reply: Reply) -> dict[int, pb.TokenLogprobs]:
    """Give the entries of prompt tokens by index."""
    found: dict[int, pb.TokenLogprobs] = {}
    for response in reply.responses:
        for i, entry in enumerate(response.prompt_logprobs.tokens):
            assert response.prompt_logprobs.start + i not in found
            found[response.prompt_logprobs.start + i] = entry
    return found


async def test_a_stream_is_admitted_first_then_steps_then_finished_once(engine: EngineClient) -> None:
    reply = await engine.generate(build(max_tokens=6))
    assert kinds(reply)[0] == "admitted"
    assert kinds(reply)[-1] == "finished"
    assert set(kinds(reply)[1:-1]) == {"step"}
    assert all(response.step.token_ids for response in reply.responses[1:-1])


async def test_usage_counts_prompt_and_output(engine: EngineClient) -> None:
    for length in (1, 63, 64, 65, 130):
        reply = await engine.generate(build(list(range(length)), max_tokens=3))
        usage = finished(reply).usage
        assert (usage.prompt_tokens, usage.output_tokens) == (length, len(reply.tokens)) == (length, 3)
        assert usage.cached_tokens == reply.responses[0].admitted.num_cached_tokens < length
        assert finished(reply).reason == pb.FINISH_REASON_LENGTH
        assert not finished(reply).HasField("stop_token_id")


async def test_a_stop_id_ends_the_output_and_is_its_last_token(engine: EngineClient) -> None:
    greedy = pb.SamplingParams(temperature=0)
    free = await engine.generate(build(max_tokens=12, sampling=greedy))
    stop = free.tokens[5]
    first = free.tokens.index(stop)
    reply = await engine.generate(build(max_tokens=12, sampling=greedy, limits={"stop_token_ids": [stop]}))
    assert reply.tokens == free.tokens[: first + 1]
    assert finished(reply).reason == pb.FINISH_REASON_STOP
    assert finished(reply).stop_token_id == stop
    assert finished(reply).usage.output_tokens == first + 1


async def find_end_token(engine: EngineClient, ends: set[int]) -> tuple[list[int], pb.SamplingParams]:
    """Give a prompt and a way to draw whose first output token is an end token."""
    params = pb.LogprobsParams(num_top=20)
    for i in range(2000):
        prompt = [i % 200, i // 200]
        reply = await engine.generate(build(prompt, max_tokens=1, logprobs=params))
        if not ends & set(logprobs(reply)[0].top_token_ids):
            continue
        for seed in range(100):
            sampling = pb.SamplingParams(temperature=100, top_k=20, seed=seed)
            if (await engine.generate(build(prompt, max_tokens=1, sampling=sampling))).tokens[0] in ends:
                return prompt, sampling
    pytest.fail("no end token was ever drawn")


async def test_an_end_token_ends_the_output_unless_it_is_ignored(engine: EngineClient) -> None:
    described = await engine.stub.Describe(pb.DescribeRequest())
    prompt, sampling = await find_end_token(engine, set(described.eos_token_ids))
    ignored = await engine.generate(build(prompt, max_tokens=4, sampling=sampling))
    assert len(ignored.tokens) == 4
    assert finished(ignored).reason == pb.FINISH_REASON_LENGTH
    reply = await engine.generate(build(prompt, max_tokens=4, sampling=sampling, limits={"ignore_eos": False}))
    assert reply.tokens == ignored.tokens[:1]
    assert finished(reply).reason == pb.FINISH_REASON_STOP
    assert finished(reply).stop_token_id == reply.tokens[0]


async def test_no_output_tokens_compute_the_prompt_only(engine: EngineClient) -> None:
    prompt = [(7 * i) % 200 for i in range(150)]
    reply = await engine.generate(build(prompt, max_tokens=0, prompt_logprobs=pb.LogprobsParams(num_top=2)))
    assert set(kinds(reply)[1:-1]) == {"prompt_logprobs"}
    assert sorted(prompt_logprobs(reply)) == list(range(1, 150))
    assert finished(reply).reason == pb.FINISH_REASON_LENGTH
    assert finished(reply).usage.output_tokens == 0
    bare = await engine.generate(build(prompt, max_tokens=0))
    assert kinds(bare) == ["admitted", "finished"]


async def test_prompt_logprobs_come_before_the_first_step_and_cover_a_prompt_of_any_length(
    engine: EngineClient,
) -> None:
    for length in (1, 2, 64, 65):
        request = build(list(range(length)), max_tokens=2, prompt_logprobs=pb.LogprobsParams(num_top=0))
        reply = await engine.generate(request)
        assert sorted(prompt_logprobs(reply)) == list(range(1, length))
        order = [kind for kind in kinds(reply) if kind in ("prompt_logprobs", "step")]
        assert order == sorted(order)


async def test_logprobs_are_sorted_sum_to_at_most_one_and_hold_the_greedy_token_first(engine: EngineClient) -> None:
    sampling = pb.SamplingParams(temperature=0)
    request = build(max_tokens=5, sampling=sampling, logprobs=pb.LogprobsParams(num_top=5))
    reply = await engine.generate(request)
    entries = logprobs(reply)
    assert len(entries) == 5
    for token, entry in zip(reply.tokens, entries, strict=True):
        pairs = list(zip(entry.top_logprobs, entry.top_token_ids, strict=True))
        assert len(pairs) == 5
        assert pairs == sorted(pairs, key=lambda pair: (-pair[0], pair[1]))
        assert sum(math.exp(value) for value, _ in pairs) <= 1 + 1e-6
        assert (entry.logprob, token) == pairs[0]


async def test_logprobs_are_of_the_raw_distribution_and_only_if_asked_for(engine: EngineClient) -> None:
    greedy = await engine.generate(
        build(max_tokens=1, sampling=pb.SamplingParams(temperature=0), logprobs=pb.LogprobsParams(num_top=3))
    )
    hot = pb.SamplingParams(temperature=5, top_p=0.9, seed=3)
    sampled = await engine.generate(build(max_tokens=1, sampling=hot, logprobs=pb.LogprobsParams(num_top=3)))
    assert list(logprobs(greedy)[0].top_token_ids) == list(logprobs(sampled)[0].top_token_ids)
    assert list(logprobs(greedy)[0].top_logprobs) == list(logprobs(sampled)[0].top_logprobs)
    own = await engine.generate(build(max_tokens=2, logprobs=pb.LogprobsParams(num_top=0)))
    assert [len(entry.top_token_ids) for entry in logprobs(own)] == [0, 0]
    assert all(entry.logprob < 0 for entry in logprobs(own))
    assert logprobs(await engine.generate(build(max_tokens=2))) == []


async def test_a_prompts_logprobs_say_what_greedy_output_says(engine: EngineClient) -> None:
    sampling = pb.SamplingParams(temperature=0)
    params = pb.LogprobsParams(num_top=1)
    first = await engine.generate(build(max_tokens=1, sampling=sampling, logprobs=params))
    scored = await engine.generate(build([*PROMPT, first.tokens[0]], max_tokens=0, prompt_logprobs=params))
    entry = prompt_logprobs(scored)[len(PROMPT)]
    assert list(entry.top_token_ids) == first.tokens
    # A prompt row and the row that the first token was drawn from are the same row.
    assert entry.logprob == pytest.approx(logprobs(first)[0].logprob, abs=1e-5)


async def test_a_seed_fixes_the_output_and_another_changes_it(engine: EngineClient) -> None:
    async def draw(**sampling: Any) -> tuple[int, list[int]]:
        reply = await engine.generate(build(max_tokens=12, sampling=pb.SamplingParams(temperature=1.5, **sampling)))
        return reply.responses[0].admitted.seed, reply.tokens

    assert await draw(seed=7) == await draw(seed=7)
    assert (await draw(seed=7))[1] != (await draw(seed=8))[1]
    assert (await draw(seed=5, seed_offset=2)) == await draw(seed=7)
    assert (await draw(seed=7))[0] == 7
    assert (await draw(seed=-1))[0] == 2**64 - 1
    assert (await draw(seed=-1, seed_offset=3))[0] == 2


async def test_without_a_seed_a_request_repeats_itself_and_another_prompt_has_another_seed(
    engine: EngineClient,
) -> None:
    sampling = pb.SamplingParams(temperature=1.5)
    first, second = [await engine.generate(build(max_tokens=12, sampling=sampling)) for _ in range(2)]
    assert first.tokens == second.tokens
    seed = first.responses[0].admitted.seed
    assert second.responses[0].admitted.seed == seed
    other = await engine.generate(build([*PROMPT, 1], max_tokens=1, sampling=sampling))
    assert other.responses[0].admitted.seed != seed
    shifted = await engine.generate(build(max_tokens=12, sampling=pb.SamplingParams(temperature=1.5, seed_offset=1)))
    assert shifted.responses[0].admitted.seed == (seed + 1) % 2**64
    assert shifted.tokens != first.tokens


async def test_one_candidate_is_the_greedy_one(engine: EngineClient) -> None:
    greedy = await engine.generate(build(sampling=pb.SamplingParams(temperature=0, top_p=0.5, seed=9)))
    for sampling in (
        pb.SamplingParams(temperature=2, top_k=1, seed=1),
        pb.SamplingParams(temperature=2, top_p=1e-9, seed=1),
        pb.SamplingParams(temperature=2, min_p=1, seed=1),
    ):
        assert (await engine.generate(build(sampling=sampling))).tokens == greedy.tokens


async def test_a_bias_of_100_forces_a_token_and_one_of_minus_100_forbids_it(engine: EngineClient) -> None:
    forced = await engine.generate(build(sampling=pb.SamplingParams(temperature=2, logit_bias={33: 100})))
    assert forced.tokens == [33] * 8
    free = await engine.generate(build(sampling=pb.SamplingParams(temperature=0)))
    forbidden = pb.SamplingParams(temperature=0, logit_bias=dict.fromkeys(free.tokens, -100.0))
    assert not set(free.tokens) & set((await engine.generate(build(sampling=forbidden))).tokens)


async def is_drawn(engine: EngineClient, token_id: int) -> bool:
    """Say whether the engine draws this id at all."""
    reply = await engine.generate(build(max_tokens=1, sampling=pb.SamplingParams(logit_bias={token_id: 100})))
    return reply.tokens == [token_id]


@pytest.mark.parametrize("num_prior", [0, 3])
async def test_greedy_tokens_are_those_that_counts_of_the_output_and_the_raw_distribution_say(
    engine: EngineClient, num_prior: int
) -> None:
    bias = {3: 0.5, 44: 1.0, 17: -1.0}
    sampling = pb.SamplingParams(temperature=0, frequency_penalty=0.9, presence_penalty=0.7, logit_bias=bias)
    request = build(max_tokens=40, sampling=sampling, logprobs=pb.LogprobsParams(num_top=20))
    request.num_prior_output_tokens = num_prior
    reply = await engine.generate(request)
    output = PROMPT[len(PROMPT) - num_prior :]
    num_moved, num_compared = 0, 0
    for token, entry in zip(reply.tokens, logprobs(reply), strict=True):
        adjusted = {
            token_id: value + bias.get(token_id, 0) - 0.9 * output.count(token_id) - 0.7 * (token_id in output)
            for token_id, value in zip(entry.top_token_ids, entry.top_logprobs, strict=True)
        }
        best = max(adjusted, key=lambda token_id: adjusted[token_id])
        while best != token and not await is_drawn(engine, best):
            del adjusted[best]
            best = max(adjusted, key=lambda token_id: adjusted[token_id])
        # Ids below the twenty cannot win, unless a bias lifts them.
        if adjusted[best] > min(entry.top_logprobs) + max(bias.values()):
            assert token == best
            num_compared += 1
        num_moved += token != entry.top_token_ids[0]
        output.append(token)
    assert num_moved > 0
    assert num_compared > 10


async def test_a_large_repetition_penalty_lets_nothing_of_prompt_or_output_come_again(engine: EngineClient) -> None:
    free = await engine.generate(build(max_tokens=1, sampling=pb.SamplingParams(temperature=0)))
    prompt = [*PROMPT, *free.tokens]
    sampling = pb.SamplingParams(temperature=0, repetition_penalty=1e9)
    tokens = (await engine.generate(build(prompt, max_tokens=20, sampling=sampling))).tokens
    assert len({*tokens, *prompt}) == 20 + len(set(prompt))


@pytest.mark.parametrize("num_prior", [0, 2])
@pytest.mark.parametrize("ignore_eos", [False, True])
async def test_end_tokens_and_stop_ids_come_only_after_min_tokens(
    engine: EngineClient, num_prior: int, ignore_eos: bool
) -> None:
    described = await engine.stub.Describe(pb.DescribeRequest())
    stop = 33 if ignore_eos else described.eos_token_ids[0]
    ends = {33, *described.eos_token_ids}
    limits = {"min_tokens": 5, "stop_token_ids": [33], "ignore_eos": ignore_eos}
    request = build(max_tokens=12, limits=limits, sampling=pb.SamplingParams(logit_bias={stop: 100}))
    request.num_prior_output_tokens = num_prior
    reply = await engine.generate(request)
    assert not ends & set(reply.tokens[:-1])
    assert len(reply.tokens) == 5 - num_prior + 1
    assert (finished(reply).reason, finished(reply).stop_token_id) == (pb.FINISH_REASON_STOP, stop)


async def test_a_reply_that_goes_on_keeps_its_derived_seed_and_counts_what_it_said(engine: EngineClient) -> None:
    first = await engine.generate(build(max_tokens=4))
    rest = build([*PROMPT, *first.tokens], max_tokens=5)
    rest.num_prior_output_tokens = len(first.tokens)
    reply = await engine.generate(rest)
    assert reply.responses[0].admitted.seed == first.responses[0].admitted.seed
    usage = finished(reply).usage
    assert (usage.prompt_tokens, usage.output_tokens, len(reply.tokens)) == (len(PROMPT), 4 + 5, 5)
    rest.num_prior_output_tokens = len(rest.prompt_token_ids)
    assert (await engine.generate(rest)).code == "INVALID_ARGUMENT"


async def test_requests_that_run_together_say_what_each_says_alone(engine: EngineClient) -> None:
    requests = [
        build(
            [(i * 31 + j) % 200 for j in range(length)],
            max_tokens=10,
            sampling=pb.SamplingParams(
                seed=i, repetition_penalty=1 + i / 10, frequency_penalty=i % 3, logit_bias={i: 2}
            ),
        )
        for i, length in enumerate((3, 70, 130, 1))
    ]
    alone = [await engine.generate(request) for request in requests]
    together = await asyncio.gather(*(engine.generate(request) for request in requests))
    assert [reply.tokens for reply in together] == [reply.tokens for reply in alone]
