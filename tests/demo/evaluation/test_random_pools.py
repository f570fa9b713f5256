"""Whether the longest needles need the indexer: with random pools instead of the selected ones none may be found."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer
from torch import Tensor

from support.paged import paged
from twinspark_demo.drafts.template import DEMO_FOLDER, load_template, render
from twinspark_demo.evaluation.answer import Answer
from twinspark_demo.evaluation.drawing import draw_prompts
from twinspark_demo.evaluation.filler import SAMPLE_SENTENCES, sample_text
from twinspark_demo.evaluation.prompt import Prompt
from twinspark_demo.evaluation.reply import Reply
from twinspark_demo.evaluation.scoring import is_right
from twinspark_engine.model import dsa_layer
from twinspark_engine.model.config import ModelConfig
from twinspark_engine.model.model import Model
from twinspark_engine.model.state import ModelState
from twinspark_engine.model.weights import eos_token_ids, load_weights, masked_token_ids
from twinspark_engine.ranks.transport import LocalTransport
from twinspark_engine.request import Limits, Request, SamplingParams
from twinspark_engine.runner.runner import Runner, RunnerLimits
from twinspark_engine.scheduler.plan import Admission, DecodeWindow, PrefillChunk, StepPlan
from twinspark_kernels.indexer import select_pools
from twinspark_kernels.paged import PagedRows
from twinspark_kernels.scratch import GrowingScratch

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

NUM_PROMPTS = 5
CONTEXT, CHUNK, MAX_TOKENS = 10_240, 1_024, 24
SEED = 11
Answerer = Callable[[Prompt], Answer]


class RandomPools:
    """In place of select_pools: as many pools of the same candidates, those that come first in one random order.

    All rows and layers follow that order. Drawn anew for each row, pools would add up: ten rows of a question with two
    layers come upon half of all pools, and what each has read is passed on.
    """

    def __init__(self) -> None:
        self._ranks = torch.randperm(CONTEXT, generator=torch.Generator().manual_seed(5)).float()

    def __call__(
        self,
        queries: Tensor,
        head_weights: Tensor,
        pools: PagedRows,
        slots: Tensor,
        positions: Tensor,
        *,
        num_selected: int,
        pool: int,
        scratch: GrowingScratch | None = None,
    ) -> Tensor:
        num_complete = (positions + 1) // pool
        most = max(int(num_complete.max()), num_selected)
        candidate = torch.arange(most)[None] < num_complete[:, None]
        keys = self._ranks[:most].expand(len(positions), most)
        drawn = keys.masked_fill(~candidate, -1.0).topk(num_selected, dim=1).indices
        chosen = drawn.where(candidate.gather(1, drawn), most).sort(dim=1).values
        return chosen.where((chosen < most) & (slots[:, None] >= 0), -1)


def test_random_pools_are_as_many_of_the_same_candidates() -> None:
    generator = torch.Generator().manual_seed(0)
    positions = torch.tensor([199, 200, 2_000, 2_001, 2_002])
    arguments = (
        torch.randn(5, 2, 8, generator=generator),
        torch.randn(5, 2, generator=generator),
        paged(torch.randn(2, 600, 8, generator=generator)),
        torch.tensor([0, 0, 1, 1, 1]),
        positions,
    )
    selected = select_pools(*arguments, num_selected=128, pool=4)
    drawn = RandomPools()(*arguments, num_selected=128, pool=4)
    assert ((drawn >= 0).sum(dim=1) == (selected >= 0).sum(dim=1)).all()
    # Where all candidates are taken the two agree; else only in part.
    assert (drawn[:2] == selected[:2]).all()
    for row in range(2, 5):
        pools = drawn[row].tolist()
        assert pools == sorted(set(pools)) and pools[-1] < (positions[row] + 1) // 4
        assert len(set(pools) & set(selected[row].tolist())) < 64


@pytest.fixture(scope="module")
def prompts() -> list[Prompt]:
    tokenizer = Tokenizer.from_file(str(DEMO_FOLDER / "tokenizer.json"))
    per_sentence = len(tokenizer.encode(sample_text(), add_special_tokens=False).ids) / SAMPLE_SENTENCES
    return draw_prompts("needle_8000", NUM_PROMPTS, SEED, per_sentence)


@pytest.fixture(scope="module")
def answerer() -> Answerer:
    """Answers a prompt greedily with the engine's runner, in this process."""
    runner, template = build_runner(DEMO_FOLDER), load_template(DEMO_FOLDER)
    tokenizer = Tokenizer.from_file(str(DEMO_FOLDER / "tokenizer.json"))

    def answer(prompt: Prompt) -> Answer:
        ids = tokenizer.encode(render(template, prompt.messages), add_special_tokens=False).ids
        assert len(ids) > 8_000
        output = generate(runner, ids)
        text = tokenizer.decode(output[:-1], skip_special_tokens=False)
        return Answer(Reply(text.partition("</think>")[2]), text)

    return answer


def build_runner(folder: Path) -> Runner[ModelState]:
    config, transport = ModelConfig.from_folder(folder), LocalTransport()
    weights = load_weights(folder, config, 0, 1, torch.float32)
    state = ModelState.allocate(config, 1, 1, CONTEXT, torch.float32)
    masked = masked_token_ids(folder, config.vocab_size)
    limits = RunnerLimits(1, CONTEXT, CHUNK, frozenset(eos_token_ids(folder)), masked)
    return Runner(Model(config, weights, transport), state, transport, limits)


def generate(runner: Runner[ModelState], ids: list[int]) -> list[int]:
    """Output tokens, greedily, to the end token or MAX_TOKENS."""
    runner.reset()
    request = Request("needle", tuple(ids), SamplingParams(seed=0, temperature=0.0), Limits(MAX_TOKENS))
    chunks = [PrefillChunk(0, start, min(CHUNK, len(ids) - start)) for start in range(0, len(ids), CHUNK)]
    output: list[int] = []
    step, finished = 0, False
    while not finished:
        admissions = (Admission(0, request),) if step == 0 else ()
        windows = () if step < len(chunks) else (DecodeWindow(0),)
        plan = StepPlan(1, step, admissions=admissions, chunks=tuple(chunks[step : step + 1]), windows=windows)
        for slot_output in runner.execute(plan).outputs:
            output += slot_output.token_ids
            finished = slot_output.finish_reason is not None
        step += 1
    return output


def test_needles_are_found_with_the_selected_pools(prompts: list[Prompt], answerer: Answerer) -> None:
    selected = [is_right(prompt, answerer(prompt)) for prompt in prompts]
    assert sum(selected) >= NUM_PROMPTS - 1


def test_needles_are_not_found_with_random_pools(
    prompts: list[Prompt], answerer: Answerer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dsa_layer, "select_pools", RandomPools())
    drawn = [is_right(prompt, answerer(prompt)) for prompt in prompts]
    assert sum(drawn) == 0
