"""Runs one choice: the engine's events in, deltas of text and then one end out.

Streamed and whole replies are both made from these deltas, so they agree by construction.
"""

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from twinspark_gateway.clients.engine import Generator
from twinspark_gateway.generation import Admitted, Event, Finished, Generation, PromptLogprobs, Step, TokenLogprob
from twinspark_gateway.reply.answer_text import PlacedLogprob
from twinspark_gateway.reply.text_reader import SafeText, TextReader, ToolCall
from twinspark_gateway.reply.thinking_budget import ThinkingBudget, go_on
from twinspark_gateway.reply.timings import CallTimer, Timings
from twinspark_gateway.reply.usage import Usage


@dataclass(frozen=True, slots=True)
class Started:
    """The engine gave the choice its slot."""

    index: int
    usage: Usage


@dataclass(frozen=True, slots=True)
class PromptScored:
    """Log probabilities of the prompt, one for each token; the first has none."""

    index: int
    logprobs: Sequence[TokenLogprob | None]


@dataclass(frozen=True, slots=True)
class Delta:
    """What one step added. token_ids are those since the last delta, also ones without text."""

    index: int
    reasoning: str
    content: str
    calls: Sequence[ToolCall]
    logprobs: Sequence[PlacedLogprob]
    token_ids: Sequence[int]
    usage: Usage


@dataclass(frozen=True, slots=True)
class Ended:
    """The last message of a choice."""

    index: int
    # "stop", "tool_calls" or "length".
    finish_reason: str
    # The stop string, or the id among the request's stop_token_ids, that ended the output.
    stop_reason: str | int | None
    usage: Usage
    timings: Timings
    # Whether a thinking budget closed the reasoning.
    was_closed: bool = False
    # How the answer fits the part of its schema that masks do not enforce: valid, violated or unchecked; None: all is
    # enforced, or the answer was cut.
    schema_check: str | None = None


Message = Started | PromptScored | Delta | Ended


@dataclass(slots=True)
class Choice:
    """One choice of a reply. Used once.

    It is one call of the engine, and a second one if its thinking budget closed the reasoning.
    """

    index: int
    generation: Generation
    reader: TextReader
    # End tokens and stop ids that end the output; they have no text.
    end_token_ids: frozenset[int]
    budget: ThinkingBudget | None = None
    num_cached_tokens: int = 0
    stop_token_id: int | None = None
    _is_budget_spent: bool = False
    _was_closed: bool = False
    _output: list[int] = field(default_factory=list)
    _num_sent: int = 0
    _is_started: bool = False
    _prompt_logprobs: list[TokenLogprob | None] = field(default_factory=lambda: [None])
    _is_scored: bool = field(init=False)
    _timings: Timings = field(default_factory=Timings)
    # Why the engine ended the output.
    _reason: str = "length"

    def __post_init__(self) -> None:
        self._is_scored = self.generation.num_top_prompt_logprobs is None

    @property
    def usage(self) -> Usage:
        """Counts so far."""
        return Usage(
            prompt_tokens=len(self.generation.prompt_token_ids),
            completion_tokens=len(self._output),
            cached_tokens=self.num_cached_tokens,
            reasoning_tokens=self.reader.num_reasoning_tokens,
        )

    async def run(self, engine: Generator) -> AsyncGenerator[Message, None]:
        """Give the choice's messages; the last is Ended. Raises ApiError. Closing it cancels the request."""
        call: Generation | None = self.generation
        while call is not None:
            async with aclosing(self._run_call(engine, call)) as messages:
                async for message in messages:
                    yield message
            call = None
            if self._is_budget_spent and self.budget is not None:
                delta = self._close_reasoning(self.budget)
                if delta is not None:
                    yield delta
                call = go_on(self.generation, self._output) if self.stop_token_id is None else None
        if self.reader.matched_stop is None and self.stop_token_id is None:
            delta = self._delta(self.reader.end(None, None), is_last=True)
            if delta is not None:
                yield delta
        yield self._end()

    async def _run_call(self, engine: Generator, call: Generation) -> AsyncGenerator[Message, None]:
        """Run one call to its end, or until the choice needs no more of it."""
        timer = CallTimer(call)
        async with aclosing(engine.generate(call)) as events:
            async for event in events:
                timer.note(event)
                for message in self._take(event):
                    yield message
                if self.reader.matched_stop is not None or self._is_budget_spent:
                    break
        self._timings += timer.timings

    def _take(self, event: Event) -> Iterator[Message]:
        if isinstance(event, Step | Finished) and not self._is_scored:
            self._is_scored = True
            yield PromptScored(self.index, self._prompt_logprobs)
        if isinstance(event, Admitted):
            if not self._is_started:
                self._is_started, self.num_cached_tokens = True, event.num_cached_tokens
                yield Started(self.index, self.usage)
        elif isinstance(event, PromptLogprobs):
            self._prompt_logprobs.extend(event.tokens)
        elif isinstance(event, Step):
            delta = self._take_step(event)
            if delta is not None:
                yield delta
        else:
            self._reason = event.reason

    def _take_step(self, step: Step) -> Delta | None:
        text = SafeText()
        for i, token_id in enumerate(step.token_ids):
            logprob = step.logprobs[i] if step.logprobs else None
            if token_id not in self.end_token_ids and self._spends_budget(token_id):
                self._is_budget_spent = True
                break
            self._output.append(token_id)
            if token_id in self.end_token_ids:
                self.stop_token_id = token_id
                text.add(self.reader.end(token_id, logprob))
                break
            may_stop = len(self._output) > self.generation.min_tokens
            text.add(self.reader.take(token_id, logprob, may_stop=may_stop))
            if self.reader.matched_stop is not None:
                break
        is_last = self.stop_token_id is not None or self.reader.matched_stop is not None
        return self._delta(text, is_last=is_last)

    def _spends_budget(self, token_id: int) -> bool:
        """Say whether the next token is the one that the budget replaces. Without room for an answer none is."""
        if self.budget is None or len(self._output) + 1 != self.budget.num_tokens:
            return False
        return self.budget.num_tokens < self.generation.max_tokens and self.reader.would_reason(token_id)

    def _close_reasoning(self, budget: ThinkingBudget) -> Delta | None:
        self._is_budget_spent, self._was_closed = False, True
        text = SafeText()
        for token_id in budget.closing_token_ids[: self.generation.max_tokens - len(self._output)]:
            self._output.append(token_id)
            if token_id in self.end_token_ids:
                self.stop_token_id = token_id
                text.add(self.reader.end(token_id, None))
                break
            text.add(self.reader.take_forced(token_id))
        return self._delta(text, is_last=self.stop_token_id is not None)

    def _delta(self, text: SafeText, *, is_last: bool) -> Delta | None:
        """Give the delta; None while there is nothing to see. Ids without text wait for the next one or the end."""
        is_empty = not (text.reasoning or text.content or text.calls or text.logprobs)
        if is_empty and not (is_last and self._num_sent < len(self._output)):
            return None
        token_ids, self._num_sent = self._output[self._num_sent :], len(self._output)
        return Delta(self.index, text.reasoning, text.content, text.calls, text.logprobs, token_ids, self.usage)

    def _end(self) -> Ended:
        stop: str | int | None = self.reader.matched_stop
        if stop is None and self.stop_token_id in self.generation.stop_token_ids:
            stop = self.stop_token_id
        reason = self._reason
        if self.reader.matched_stop is not None or self.stop_token_id is not None:
            reason = "stop"
        # A reply that a limit cut is no finished call, whatever stands before the cut.
        if reason == "stop" and self.reader.num_calls:
            reason = "tool_calls"
        return Ended(self.index, reason, stop, self.usage, self._timings, self._was_closed)
