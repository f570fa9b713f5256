"""A fake engine that follows grammars: it opens a Mask stream of a real grammar service, and draws allowed ids only.

What it says is a function of the request. It says what it wants while masks allow it, then explores a
little, and then takes the ids that close most, so that every reply ends.
"""

import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import grpc

from fakes.engine import FakeEngine
from fakes.engine_model import derive_seed
from twinspark.engine.v1 import engine_pb2 as pb
from twinspark.grammar.v1 import grammar_pb2
from twinspark.grammar.v1.grammar_pb2_grpc import GrammarServiceStub
from twinspark_rpc import ServiceError

Wanted = Callable[[pb.GenerateRequest], Sequence[int]]


class GrammarLostError(ServiceError):
    """What a constrained request gets when its masks do not come."""

    REASON: ClassVar[str] = "GRAMMAR_LOST"
    CODE: ClassVar[grpc.StatusCode] = grpc.StatusCode.UNAVAILABLE


@dataclass
class ConstrainedEngine(FakeEngine):
    """See the module; requests without a grammar run as in FakeEngine. `grammar`: address of the service."""

    grammar: str = ""
    # Ids to take where nothing else is wanted, best first; the lowest where none of them is allowed.
    closing: Sequence[int] = ()
    # What to say as long as it is allowed.
    wanted: Wanted | None = None
    # Tokens that are drawn at random where it is not.
    num_explored: int = 0
    # Holds constrained requests after so many tokens until the gate is set; 0: not.
    hold_after: int = 0
    masks_opened: int = field(default=0)

    async def _decode(self, request: pb.GenerateRequest, seed: int, cached: int) -> AsyncIterator[pb.GenerateResponse]:
        if not request.HasField("grammar"):
            async for response in super()._decode(request, seed, cached):
                yield response
            return
        limits = request.limits
        ends = {*limits.stop_token_ids, *self.model.eos_token_ids}
        output: list[int] = []
        async with self._open_masks(request, ends) as masks:
            while len(output) < limits.max_tokens and not (output and output[-1] in ends):
                if self.hold_after and len(output) >= self.hold_after:
                    await self.gate.wait()
                allowed = await masks.advance(output[-1:])
                output.append(self._choose(request, output, allowed, ends))
                self.counts["output_tokens_total"] += 1
                self.counts["steps_total"] += 1
                step = pb.Step(token_ids=output[-1:])
                if request.HasField("logprobs"):
                    before = [*request.prompt_token_ids, *output[:-1]]
                    entry = self.model.describe_token(before, output[-1], request.logprobs.num_top)
                    step.logprobs.append(entry)
                yield pb.GenerateResponse(step=step)
        stop_id = output[-1] if output and output[-1] in ends else None
        usage = pb.Usage(prompt_tokens=len(request.prompt_token_ids), output_tokens=len(output), cached_tokens=cached)
        reason = pb.FINISH_REASON_LENGTH if stop_id is None else pb.FINISH_REASON_STOP
        yield pb.GenerateResponse(finished=pb.Finished(reason=reason, stop_token_id=stop_id, usage=usage))

    def _choose(
        self, request: pb.GenerateRequest, output: Sequence[int], allowed: Sequence[int], ends: set[int]
    ) -> int:
        said = len(output)
        wanted = list(self.wanted(request)) if self.wanted is not None else []
        if wanted[:said] == list(output) and said < len(wanted) and wanted[said] in allowed:
            return wanted[said]
        if said < self.num_explored:
            seed = derive_seed(request.prompt_token_ids) + request.sampling.seed_offset
            others = [token_id for token_id in allowed if token_id not in ends] or list(allowed)
            return random.Random(f"{seed}:{said}").choice(others)
        best = [*(token_id for token_id in self.model.eos_token_ids if token_id in ends), *self.closing]
        return next((token_id for token_id in best if token_id in allowed), allowed[0])

    @asynccontextmanager
    async def _open_masks(self, request: pb.GenerateRequest, ends: set[int]) -> AsyncIterator["_Masks"]:
        self.masks_opened += 1
        async with grpc.aio.insecure_channel(self.grammar) as channel:
            masks = _Masks(GrammarServiceStub(channel).Mask(), self.model.vocabulary_size)
            try:
                await masks.open(request, sorted(ends))
                yield masks
            except (grpc.aio.AioRpcError, grpc.aio.UsageError) as error:
                raise GrammarLostError("the grammar service was lost") from error


class _Masks:
    def __init__(self, call: Any, size: int) -> None:
        self._call = call
        self._size = size
        self._round = 0

    async def open(self, request: pb.GenerateRequest, stop_token_ids: Sequence[int]) -> None:
        grammar = request.grammar
        opened = grammar_pb2.MaskOpen(
            grammar=grammar_pb2.Grammar(handle=grammar.handle, kind=grammar.kind, source=grammar.source),  # type: ignore[arg-type]
            vocabulary_size=self._size,
            stop_token_ids=stop_token_ids,
            start=grammar.start,  # type: ignore[arg-type]
        )
        await self._call.write(grammar_pb2.MaskRequest(open=opened))
        await self._read()

    async def advance(self, committed: Sequence[int]) -> list[int]:
        """Give the ids that may follow."""
        window = grammar_pb2.MaskWindow(round=self._round, committed_token_ids=committed)
        self._round += 1
        await self._call.write(grammar_pb2.MaskRequest(window=window))
        masks = (await self._read()).masks
        return [i for i in range(self._size) if masks[i // 8] >> (i % 8) & 1]

    async def _read(self) -> Any:
        answer = await self._call.read()
        if answer is grpc.aio.EOF:
            # Raises the status.
            await self._call
        return answer
