"""Runs requests by random but legal plans: arrivals, slots, chunk sizes, groups, idle decoders, cancels."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from twinspark_engine.request import FinishReason, Limits, Request, SamplingParams
from twinspark_engine.scheduler.plan import (
    CELL_TOKENS,
    Admission,
    DecodeWindow,
    PrefillChunk,
    SlotOutput,
    StepPlan,
    StepResult,
    TokenLogprobs,
)

Execute = Callable[[StepPlan], StepResult]


@dataclass
class Reply:
    """All that a request was answered."""

    token_ids: list[int] = field(default_factory=list)
    logprobs: list[TokenLogprobs] = field(default_factory=list)
    prompt_logprobs: list[TokenLogprobs] = field(default_factory=list)
    finish_reason: FinishReason | None = None
    stop_token_id: int | None = None

    def add(self, output: SlotOutput) -> None:
        self.token_ids += output.token_ids
        self.logprobs += output.logprobs
        if output.prompt_logprobs:
            assert output.prompt_logprobs_start == len(self.prompt_logprobs) + 1
        self.prompt_logprobs += output.prompt_logprobs
        self.finish_reason, self.stop_token_id = output.finish_reason, output.stop_token_id


@dataclass
class _Running:
    request: Request
    slot: int
    reply: Reply
    num_computed: int = 0

    @property
    def is_prefilling(self) -> bool:
        return self.num_computed < self.request.num_prompt_tokens


class RandomPlans:
    """One run. cancelled: names of requests that leave at a random time and get no full reply."""

    def __init__(
        self, execute: Execute, num_slots: int, seed: int, max_rows: int, cancelled: Sequence[str] = ()
    ) -> None:
        self._execute = execute
        self._source = random.Random(seed)
        self._free = list(range(num_slots))
        self._max_rows = max_rows
        self._cancelled = set(cancelled)
        self._running: dict[int, _Running] = {}
        self._ended_last: list[int] = []
        self._step = 0
        self.replies: dict[str, Reply] = {}

    def run(self, requests: Sequence[Request]) -> dict[str, Reply]:
        """Replies by request_id; those of cancelled requests are left out."""
        waiting = list(requests)
        while waiting or self._running:
            plan = self._plan(waiting)
            if plan.is_empty:
                continue
            result = self._execute(plan)
            self._apply(plan, result)
        return self.replies

    def _plan(self, waiting: list[Request]) -> StepPlan:
        leaving = [r for r in self._running.values() if r.request.request_id in self._cancelled]
        leaving = [r for r in leaving if self._source.random() < 0.15]
        for running in leaving:
            self._leave(running)
        admissions = []
        while waiting and self._free and self._source.random() < 0.5:
            slot = self._free.pop(self._source.randrange(len(self._free)))
            request = waiting.pop(0)
            self._running[slot] = _Running(request, slot, Reply())
            admissions.append(Admission(slot, request))
        chunks = self._chunks()
        busy = {chunk.slot for chunk in chunks}
        decoders = [r.slot for r in self._running.values() if not r.is_prefilling and r.slot not in busy]
        windows = [slot for slot in decoders if self._source.random() < 0.8]
        # A plan made ahead of a result still names slots whose request has just ended.
        windows += [slot for slot in self._ended_last if slot not in self._running]
        self._source.shuffle(windows)
        self._ended_last = []
        plan = StepPlan(
            epoch=1,
            step=self._step,
            cancelled_slots=tuple(running.slot for running in leaving),
            admissions=tuple(admissions),
            chunks=tuple(chunks),
            windows=tuple(DecodeWindow(slot) for slot in windows),
        )
        self._step += not plan.is_empty
        return plan

    def _chunks(self) -> list[PrefillChunk]:
        budget = self._max_rows
        chunks = []
        prefilling = [r for r in self._running.values() if r.is_prefilling]
        self._source.shuffle(prefilling)
        for running in prefilling:
            cells = self._source.randrange(budget // CELL_TOKENS + 1)
            count = min(cells * CELL_TOKENS, running.request.num_prompt_tokens - running.num_computed)
            if count:
                chunks.append(PrefillChunk(running.slot, running.num_computed, count))
                budget -= -(-count // CELL_TOKENS) * CELL_TOKENS
        return chunks

    def _apply(self, plan: StepPlan, result: StepResult) -> None:
        for chunk in plan.chunks:
            self._running[chunk.slot].num_computed += chunk.num_scheduled_tokens
        assert len({output.slot for output in result.outputs}) == len(result.outputs)
        for output in result.outputs:
            running = self._running[output.slot]
            running.reply.add(output)
            if output.finish_reason is not None:
                self.replies[running.request.request_id] = running.reply
                self._ended_last.append(output.slot)
                self._leave(running)

    def _leave(self, running: _Running) -> None:
        del self._running[running.slot]
        self._free.append(running.slot)


def run_alone(execute: Execute, request: Request, max_rows: int) -> Reply:
    """The reply of a request that has the engine for itself, in slot 0 and in the largest chunks."""
    reply = Reply()
    step, start = 0, 0
    admissions: tuple[Admission, ...] = (Admission(0, request),)
    while reply.finish_reason is None:
        count = min(max_rows, request.num_prompt_tokens - start)
        chunks = (PrefillChunk(0, start, count),) if count else ()
        windows = () if count else (DecodeWindow(0),)
        start += count
        for output in execute(StepPlan(1, step, (), admissions, chunks, windows)).outputs:
            reply.add(output)
        step, admissions = step + 1, ()
    return reply


def varied_requests(count: int, seed: int, vocabulary: int, longest_prompt: int, most_tokens: int) -> list[Request]:
    """Requests of every kind, from one prompt token on: greedy and drawn, penalized and free, scored or not."""
    source = random.Random(seed)
    samplings = [
        SamplingParams(0, temperature=0),
        SamplingParams(0),
        SamplingParams(0, top_p=0.9),
        SamplingParams(0, temperature=0.7, top_k=5, min_p=0.01),
    ]
    lengths = [1, 63, 64, 65, 128]
    requests = []
    for index in range(count):
        length = min(source.choice([*lengths, source.randint(1, longest_prompt)]), longest_prompt)
        max_tokens = source.choice([0, 1, source.randint(2, most_tokens)])
        requests.append(
            Request(
                request_id=f"request {index}",
                prompt_token_ids=tuple(source.randrange(vocabulary) for _ in range(length)),
                sampling=_adjusted(source.choice(samplings), source, vocabulary),
                limits=Limits(
                    max_tokens=max_tokens,
                    stop_token_ids=frozenset(source.sample(range(vocabulary), 2 + vocabulary // 32)),
                    ignore_eos=source.random() < 0.5,
                    min_tokens=source.choice([0, 0, source.randint(0, max_tokens)]),
                ),
                num_top_logprobs=source.choice([None, None, 0, 3]),
                num_prompt_top_logprobs=source.choice([None, None, 0, 2]),
                num_prior_output_tokens=source.choice([0, 0, source.randrange(length)]),
            )
        )
    return requests


def _adjusted(sampling: SamplingParams, source: random.Random, vocabulary: int) -> SamplingParams:
    return replace(
        sampling,
        seed=source.randrange(1 << 64),
        repetition_penalty=source.choice([1.0, 1.0, 1.2]),
        frequency_penalty=source.choice([0.0, 0.0, 0.4, -0.3]),
        presence_penalty=source.choice([0.0, 0.0, 1.0]),
        logit_bias=source.choice([(), tuple((source.randrange(vocabulary), 1.5) for _ in range(2))]),
    )
