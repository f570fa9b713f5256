"""Executes StepPlans: every rank runs the same plan on the same inputs and computes the same result.

The order of a step is that of StepPlan: cancels, admissions, the prompt forward with its draw and stops, the decode
forward with its own. Nothing but the plan and exchanged data enters a decision; clocks only measure, and bound the wait
for masks, of which ranks then tell each other.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

import torch
from torch import Tensor

from twinspark_engine.masks.source import NO_MASKS, MaskAccess
from twinspark_engine.model.rows import Rows
from twinspark_engine.ranks.group import OnFirst
from twinspark_engine.ranks.transport import Transport
from twinspark_engine.request import ConstraintFailure, FinishReason
from twinspark_engine.runner.constraints import Constraints
from twinspark_engine.runner.row_buffers import RowBuffers, Segment, decode_row_counts, prompt_row_counts
from twinspark_engine.runner.sampling.adjustments import LogitAdjustments
from twinspark_engine.runner.sampling.exchange import VocabularyExchange
from twinspark_engine.runner.sampling.logprobs import PromptScorer
from twinspark_engine.runner.sampling.rows import Drawn
from twinspark_engine.runner.sampling.sampler import Sampler
from twinspark_engine.runner.sampling.vocabulary import VocabularySlice
from twinspark_engine.runner.slot_blocks import PagedState, SlotBlocks
from twinspark_engine.runner.slot_request import SlotRequest, StopRule
from twinspark_engine.scheduler.plan import Admission, PrefillChunk, SlotOutput, StepPlan, StepResult, TokenLogprobs
from twinspark_kernels.row_class import RowClass


class SlotState(PagedState, Protocol):
    """State of all slots between forwards, written in place by the model."""

    def reset_slot(self, slot: int) -> None:
        """Make a slot ready for a request at position 0. Changes that slot only."""
        ...


State = TypeVar("State", bound=SlotState)
StateRead = TypeVar("StateRead", contravariant=True)


class StepModel(Protocol[StateRead]):
    """What the runner asks of a model. Methods are called on every rank in the same order; they may exchange."""

    @property
    def vocab_offset(self) -> int:
        """Id of the first column of this rank's logits."""
        ...

    @property
    def num_vocab_columns(self) -> int:
        """Columns of this rank's logits."""
        ...

    def forward(self, rows: Rows, state: StateRead) -> Tensor:
        """Final hidden rows [T, D]; the state advances by these rows. Padding rows change no slot."""
        ...

    def logits(self, hidden: Tensor, row_class: RowClass) -> Tensor:
        """Logits [T, vocabulary / world_size] of hidden rows. A row's bits depend on the row and the class only."""
        ...


@dataclass(frozen=True, slots=True)
class RunnerLimits:
    """Sizes and token ids that the runner keeps to, the same on every rank."""

    num_slots: int
    context_tokens: int
    """Prompt and output tokens of a request at most."""
    max_prompt_rows: int
    """Prompt rows of one forward at most."""
    eos_token_ids: frozenset[int]
    masked_token_ids: frozenset[int] = frozenset()
    """Never drawn."""
    check_cache: bool = True
    """Compare the books of the KV cache after every step."""


@dataclass(frozen=True, slots=True)
class _Drawing:
    """Rows from which tokens are drawn: hidden [T, D], one row a slot."""

    slots: Sequence[int]
    hidden: Tensor


@dataclass(frozen=True, slots=True)
class _Prefilled:
    """What the prompt forward left for the rest of the step."""

    segments: Sequence[Segment]
    scores: Mapping[int, list[TokenLogprobs]]
    drawing: _Drawing | None


class Runner(Generic[State]):
    """Called by the engine's loop on rank 0 and by the follower elsewhere, from one thread."""

    def __init__(
        self,
        model: StepModel[State],
        state: State,
        transport: Transport,
        limits: RunnerLimits,
        masks: MaskAccess = NO_MASKS,
    ) -> None:
        self._model = model
        self._state = state
        self._slots: dict[int, SlotRequest] = {}
        self._blocks = SlotBlocks(state, limits.num_slots)
        self._check_cache = limits.check_cache
        self._stops = StopRule(limits.eos_token_ids, limits.context_tokens)
        self._prompt_rows = RowBuffers(RowClass.PROMPT, prompt_row_counts(limits.max_prompt_rows))
        self._decode_rows = RowBuffers(RowClass.DECODE, decode_row_counts(limits.num_slots))
        vocabulary = VocabularySlice(model.vocab_offset, model.num_vocab_columns)
        exchange = VocabularyExchange(transport, vocabulary)
        self._adjustments = LogitAdjustments(
            vocabulary, limits.num_slots, limits.eos_token_ids, limits.masked_token_ids
        )
        self._constraints = Constraints(
            masks,
            model.num_vocab_columns * transport.world_size,
            limits.eos_token_ids,
            limits.masked_token_ids,
        )
        # A slot draws at most once a step: from its last prompt row or from its decode row.
        self._sampler = Sampler(exchange, self._adjustments, limits.num_slots)
        self._scorer = PromptScorer(exchange, lambda rows: model.logits(rows, RowClass.PROMPT))

    @torch.inference_mode()
    def execute(self, plan: StepPlan, on_first: OnFirst | None = None) -> StepResult:
        """See StepRunner.execute. Raises also LogitsError, and ValueError for a plan that contradicts the slots.

        With check_cache also CacheCheckError and BlockCountError.
        """
        for slot in plan.cancelled_slots:
            if slot in self._slots:
                self._free(slot)
        for admission in plan.admissions:
            self._admit(admission)
        waited_us, num_masked_rows = self._constraints.wait_us, self._constraints.num_masked_rows
        started = time.perf_counter_ns()
        decoding = self._decoding_slots(plan)
        first = self._run_prompts([self._segment(chunk) for chunk in plan.chunks])
        middle = time.perf_counter_ns()
        if first and decoding and on_first is not None:
            on_first(first)
            first = ()
        decoded_from = time.perf_counter_ns()
        outputs = first + self._run_windows(decoding)
        ended = time.perf_counter_ns()
        num_free_blocks = None
        if self._check_cache:
            self._blocks.check()
            num_free_blocks = self._blocks.num_free_blocks
        return StepResult(
            outputs,
            prefill_us=(middle - started) // 1000,
            decode_us=(ended - decoded_from) // 1000,
            mask_wait_us=self._constraints.wait_us - waited_us,
            num_masked_rows=self._constraints.num_masked_rows - num_masked_rows,
            num_free_blocks=num_free_blocks,
        )

    def reset(self) -> None:
        """See StepRunner.reset."""
        self._slots.clear()
        self._constraints.reset()
        self._blocks.reset()

    @property
    def num_used_blocks(self) -> int:
        """KV blocks that slots have."""
        return self._blocks.num_used_blocks

    @property
    def slot_table_bytes(self) -> int:
        """Bytes of what sampling keeps for the slots."""
        return self._adjustments.nbytes

    def data_pointers(self) -> tuple[int, ...]:
        """Addresses of every input buffer, which never change."""
        buffers = (self._prompt_rows, self._decode_rows, self._adjustments, self._sampler)
        return tuple(pointer for buffer in buffers for pointer in buffer.data_pointers())

    def _admit(self, admission: Admission) -> None:
        if admission.slot in self._slots:
            raise ValueError(f"slot {admission.slot} is in use")
        if admission.num_cached_tokens:
            raise ValueError("there are no stored prefixes to start from")
        num_tokens = min(admission.request.num_reserved_tokens, self._stops.context_tokens)
        self._blocks.reserve(admission.slot, num_tokens)
        self._state.reset_slot(admission.slot)
        self._adjustments.admit(admission.slot, admission.request)
        self._constraints.admit(admission.slot, admission.request)
        self._slots[admission.slot] = SlotRequest.admit(admission.request)

    def _free(self, slot: int) -> None:
        del self._slots[slot]
        self._constraints.free(slot)
        self._blocks.release(slot)

    def _decoding_slots(self, plan: StepPlan) -> list[int]:
        """Looked up before the prompt forward: a first token is not fed back in its own step."""
        slots = [window.slot for window in plan.windows if window.slot in self._slots]
        if any(self._slots[slot].num_output_tokens == 0 for slot in slots):
            raise ValueError("a slot decodes before its first token is drawn")
        return slots

    def _run_prompts(self, segments: Sequence[Segment]) -> tuple[SlotOutput, ...]:
        """The prompt forward with its draw and stops."""
        if not segments:
            return ()
        prefilled = self._prefill(segments)
        return self._commit(prefilled, self._draw(prefilled.drawing))

    def _run_windows(self, slots: Sequence[int]) -> tuple[SlotOutput, ...]:
        """The decode forward with its draw and stops."""
        return self._commit(_Prefilled((), {}, None), self._draw(self._decode(slots))) if slots else ()

    def _segment(self, chunk: PrefillChunk) -> Segment:
        running = self._slots[chunk.slot]
        segment = Segment(chunk.slot, running, chunk.start, chunk.num_scheduled_tokens)
        if chunk.start != running.num_computed_tokens or segment.end > running.prompt_ids.shape[0]:
            raise ValueError(
                f"slot {chunk.slot}: chunk {chunk.start} to {segment.end} does not follow {running.num_computed_tokens}"
            )
        return segment

    def _prefill(self, segments: Sequence[Segment]) -> _Prefilled:
        """The prompt forward: advances the slots, scores prompt tokens, keeps the rows that draw a first token."""
        hidden = self._model.forward(self._prompt_rows.write_segments(segments), self._state)
        scores: dict[int, list[TokenLogprobs]] = {}
        last_rows: list[int] = []
        slots: list[int] = []
        first = 0
        for segment in segments:
            running, last = segment.running, first + segment.num_rows
            running.num_computed_tokens = segment.end
            scores[segment.slot] = self._score(segment, hidden[first:last])
            if not running.is_prefilling and self._stops.token_limit(running) > 0:
                last_rows.append(last - 1)
                slots.append(segment.slot)
            first = last
        drawing = _Drawing(slots, hidden[torch.tensor(last_rows)]) if slots else None
        return _Prefilled(segments, scores, drawing)

    def _score(self, segment: Segment, hidden: Tensor) -> list[TokenLogprobs]:
        num_top = segment.running.request.num_prompt_top_logprobs
        targets = segment.running.prompt_ids[segment.start + 1 : segment.end + 1]
        if num_top is None or not targets.shape[0]:
            return []
        return self._scorer.score(hidden[: targets.shape[0]], targets, num_top)

    def _decode(self, slots: Sequence[int]) -> _Drawing:
        """The decode forward: one row for each slot, its newest output token."""
        running = [self._slots[slot] for slot in slots]
        positions = [request.num_tokens - 1 for request in running]
        rows = self._decode_rows.write_tokens(slots, [request.last_token_id for request in running], positions)
        hidden = self._model.forward(rows, self._state)
        for request in running:
            request.num_computed_tokens = request.num_tokens
        return _Drawing(slots, hidden[: len(slots)])

    def _draw(self, drawing: _Drawing | None) -> dict[int, Drawn]:
        """The token of every slot that draws, or why it has none. All rows go through the head as decode rows."""
        if drawing is None:
            return {}
        logits = self._model.logits(drawing.hidden, RowClass.DECODE)
        masks = self._constraints.collect(drawing.slots)
        rows = [self._slots[slot].draw_row(slot, masks=masks.get(slot)) for slot in drawing.slots]
        return dict(zip(drawing.slots, self._sampler.sample(logits, rows), strict=True))

    def _commit(self, prefilled: _Prefilled, drawn: Mapping[int, Drawn]) -> tuple[SlotOutput, ...]:
        """Outputs in the order of the plan: slots with a chunk, then slots that decode."""
        outputs = []
        starts = {segment.slot: segment.start for segment in prefilled.segments}
        for slot in dict.fromkeys((*starts, *drawn)):
            scores = tuple(prefilled.scores.get(slot, ()))
            scores_start = starts[slot] + 1 if scores else 0
            output = self._commit_slot(slot, drawn.get(slot), SlotOutput(slot, (), (), scores, scores_start))
            if output.token_ids or output.prompt_logprobs or output.has_ended:
                outputs.append(output)
        return tuple(outputs)

    def _commit_slot(self, slot: int, drawn: Drawn | None, output: SlotOutput) -> SlotOutput:
        running = self._slots[slot]
        if isinstance(drawn, ConstraintFailure):
            self._free(slot)
            return replace(output, failure=drawn)
        if drawn is not None:
            running.commit(drawn.token_id)
            self._adjustments.commit(slot, drawn.token_id)
            logprobs = () if drawn.logprobs is None else (drawn.logprobs,)
            output = replace(output, token_ids=(drawn.token_id,), logprobs=logprobs)
        if running.is_prefilling:
            return output
        reason = self._stops.finish_reason(running)
        if reason is None:
            self._constraints.commit(slot, output.token_ids)
            return output
        self._free(slot)
        stop_token_id = running.last_token_id if reason is FinishReason.STOP else None
        return replace(output, finish_reason=reason, stop_token_id=stop_token_id)
