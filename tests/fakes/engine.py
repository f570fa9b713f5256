"""A fake EngineService: CPU only, deterministic, with a queue, slots, delays, cancel and errors.

Two levels. With a script it says given tokens, whatever it is asked; without one it draws from a small model and then
keeps the whole contract of the service, seeds and log probabilities included.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import grpc
from prometheus_client import CollectorRegistry

from fakes.engine_model import FakeModel, derive_seed
from twinspark.engine.v1 import engine_pb2 as pb
from twinspark.engine.v1 import engine_pb2_grpc
from twinspark.grammar.v1 import grammar_pb2
from twinspark_rpc import ListenSettings, RpcServer, ServiceError

SERVICE = "twinspark.engine.v1.EngineService"
CHUNK = 64
Script = Callable[[pb.GenerateRequest], Sequence[int]]
Context = Any
_COUNTS = (
    "requests_total",
    "requests_failed_total",
    "requests_cancelled_total",
    "requests_yielded_total",
    "prompt_tokens_total",
    "output_tokens_total",
    "steps_total",
)


class InvalidFieldError(ServiceError):
    """A field is out of range."""

    REASON: ClassVar[str] = "INVALID_FIELD"
    CODE: ClassVar[grpc.StatusCode] = grpc.StatusCode.INVALID_ARGUMENT


class ContextTooLongError(ServiceError):
    """Prompt and limit exceed the context."""

    REASON: ClassVar[str] = "CONTEXT_TOO_LONG"
    CODE: ClassVar[grpc.StatusCode] = grpc.StatusCode.OUT_OF_RANGE


class GrammarUnavailableError(ServiceError):
    """A grammar is asked for where no grammar service is."""

    REASON: ClassVar[str] = "GRAMMAR_UNAVAILABLE"
    CODE: ClassVar[grpc.StatusCode] = grpc.StatusCode.UNAVAILABLE


class QueueFullError(ServiceError):
    """Too many requests wait."""

    REASON: ClassVar[str] = "QUEUE_FULL"
    CODE: ClassVar[grpc.StatusCode] = grpc.StatusCode.RESOURCE_EXHAUSTED


class RankLostError(ServiceError):
    """What a request gets when a rank is lost."""

    REASON: ClassVar[str] = "RANK_LOST"
    CODE: ClassVar[grpc.StatusCode] = grpc.StatusCode.UNAVAILABLE


@dataclass
class FakeEngine(engine_pb2_grpc.EngineServiceServicer):
    """The servicer. Its fields may be changed while it serves; all runs in one event loop."""

    model: FakeModel = field(default_factory=FakeModel)
    script: Script | None = None
    tokens_per_step: int = 1
    step_seconds: float = 0.0
    # Time for each chunk of 64 prompt tokens.
    prefill_seconds: float = 0.0
    queue_limit: int = 64
    # Grammars are accepted; what is said is the script's business, or that of the model, which obeys none.
    has_grammar_service: bool = True
    num_cached_tokens: int = 0
    state: int = pb.ENGINE_STATE_SERVING
    # Raised by Generate after so many output tokens; 0: before Admitted.
    failure: Exception | None = None
    fail_after: int = 0
    # Holds every request after its first step until it is set again.
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    requests: list[pb.GenerateRequest] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_COUNTS, 0))
    running: set[str] = field(default_factory=set)
    prefilling: set[str] = field(default_factory=set)
    # Turns by request_id, in order of arrival.
    waiting: dict[str, asyncio.Future[None]] = field(default_factory=dict)
    background: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.gate.set()

    async def Describe(self, request: pb.DescribeRequest, context: Context) -> pb.DescribeResponse:
        """Describe the fake model."""
        model = self.model
        return pb.DescribeResponse(
            context_length=model.context_length,
            vocabulary_size=model.vocabulary_size,
            eos_token_ids=model.eos_token_ids,
            num_slots=model.num_slots,
            world_size=1,
            fingerprint=model.fingerprint,
            max_top_logprobs=model.max_top_logprobs,
            block_tokens=256,
            pool_tokens=4,
            chunk_tokens_alone=CHUNK,
            chunk_tokens_beside_decoders=CHUNK,
        )

    async def GetStats(self, request: pb.GetStatsRequest, context: Context) -> pb.GetStatsResponse:
        """Answer the counts."""
        return pb.GetStatsResponse(
            state=self.state,  # type: ignore[arg-type]
            num_slots=self.model.num_slots,
            num_running=len(self.running),
            num_waiting=len(self.waiting),
            num_prefilling=len(self.prefilling),
            epoch=1,
            slot_admissions_total=(),  # its slots have no numbers
            num_asyncio_tasks=len(asyncio.all_tasks()),
            **self.counts,
        )

    async def GetMemory(self, request: pb.GetMemoryRequest, context: Context) -> pb.GetMemoryResponse:
        """Answer an account of round numbers."""
        rank = pb.RankMemory(
            rank=0,
            source="available",
            resident_bytes=1000,
            peak_resident_bytes=1500,
            total_bytes=4000,
            free_bytes=2000,
            available_bytes=2000,
            parts={"weights": 300, "kv": 200, "state": 100},
            kv_pool=pb.KvPool(num_blocks=8, num_blocks_used=len(self.running), block_tokens=256, block_bytes=20),
            budget=pb.MemoryBudget(slot_bytes=10, reserve_bytes=50, admit_bytes=5),
            num_open_descriptors=12,
        )
        return pb.GetMemoryResponse(ranks=[rank])

    async def Generate(self, request: pb.GenerateRequest, context: Context) -> AsyncIterator[pb.GenerateResponse]:
        """Run one request."""
        self.requests.append(request)
        self._check(request)
        self.counts["requests_total"] += 1
        ended = False
        try:
            async for response in self._run(request):
                ended = response.HasField("finished")
                yield response
        except ServiceError:
            ended = True
            self.counts["requests_failed_total"] += 1
            raise
        finally:
            if not ended:
                self.counts["requests_cancelled_total"] += 1

    async def _run(self, request: pb.GenerateRequest) -> AsyncIterator[pb.GenerateResponse]:
        if self.failure is not None and self.fail_after == 0:
            raise self.failure
        if request.priority == pb.PRIORITY_BACKGROUND:
            self.background.add(request.request_id)
        try:
            await self._take_slot(request.request_id)
            prompt = request.prompt_token_ids[: len(request.prompt_token_ids) - request.num_prior_output_tokens]
            base = request.sampling.seed if request.sampling.HasField("seed") else derive_seed(prompt)
            seed = (base + request.sampling.seed_offset) % 2**64
            cached = min(self.num_cached_tokens, len(request.prompt_token_ids) - 1)
            yield pb.GenerateResponse(admitted=pb.Admitted(num_cached_tokens=cached, seed=seed))
            async for response in self._prefill(request):
                yield response
            async for response in self._decode(request, seed, cached):
                yield response
        finally:
            self._free_slot(request.request_id)
            self.background.discard(request.request_id)

    async def _take_slot(self, request_id: str) -> None:
        if len(self.running) < self.model.num_slots:
            self.running.add(request_id)
            return
        turn = self.waiting[request_id] = asyncio.get_running_loop().create_future()
        await turn

    def _free_slot(self, request_id: str) -> None:
        self.waiting.pop(request_id, None)
        self.prefilling.discard(request_id)
        self.running.discard(request_id)
        # A turn that is done was cancelled, and its request is about to leave.
        open_turns = [name for name, turn in self.waiting.items() if not turn.done()]
        open_turns.sort(key=lambda name: name in self.background)
        if open_turns and len(self.running) < self.model.num_slots:
            self.running.add(open_turns[0])
            self.waiting.pop(open_turns[0]).set_result(None)

    async def _yield_slot(self, request_id: str) -> None:
        """What was computed is kept, where the real engine computes it again; its caller cannot tell."""
        is_asked = any(not turn.done() and name not in self.background for name, turn in self.waiting.items())
        if request_id in self.background and is_asked:
            self.counts["requests_yielded_total"] += 1
            self._free_slot(request_id)
            await self._take_slot(request_id)

    async def _prefill(self, request: pb.GenerateRequest) -> AsyncIterator[pb.GenerateResponse]:
        prompt = list(request.prompt_token_ids)
        self.prefilling.add(request.request_id)
        for start in range(0, len(prompt), CHUNK):
            if self.prefill_seconds:
                await asyncio.sleep(self.prefill_seconds)
            positions = range(max(start, 1), min(start + CHUNK, len(prompt)))
            if request.HasField("prompt_logprobs") and positions:
                num_top = request.prompt_logprobs.num_top
                tokens = [self.model.describe_token(prompt[:i], prompt[i], num_top) for i in positions]
                yield pb.GenerateResponse(prompt_logprobs=pb.PromptLogprobs(start=positions.start, tokens=tokens))
        self.prefilling.discard(request.request_id)
        self.counts["prompt_tokens_total"] += len(prompt)

    async def _decode(self, request: pb.GenerateRequest, seed: int, cached: int) -> AsyncIterator[pb.GenerateResponse]:
        limits, prompt = request.limits, list(request.prompt_token_ids)
        ends = {*limits.stop_token_ids, *(() if limits.ignore_eos else self.model.eos_token_ids)}
        output: list[int] = []
        while len(output) < limits.max_tokens and not (output and output[-1] in ends):
            if output:
                await self.gate.wait()
            await asyncio.sleep(self.step_seconds)
            await self._yield_slot(request.request_id)
            step = pb.Step()
            while len(step.token_ids) < self.tokens_per_step and len(output) < limits.max_tokens:
                token_id = self._next_token(request, output, seed)
                if request.HasField("logprobs"):
                    entry = self.model.describe_token(prompt + output, token_id, request.logprobs.num_top)
                    step.logprobs.append(entry)
                output.append(token_id)
                step.token_ids.append(token_id)
                if token_id in ends or (self.failure is not None and len(output) >= self.fail_after):
                    break
            self.counts["output_tokens_total"] += len(step.token_ids)
            self.counts["steps_total"] += 1
            yield pb.GenerateResponse(step=step)
            if self.failure is not None and len(output) >= self.fail_after:
                raise self.failure
        stop_id = output[-1] if output and output[-1] in ends else None
        prior = request.num_prior_output_tokens
        usage = pb.Usage(prompt_tokens=len(prompt) - prior, output_tokens=prior + len(output), cached_tokens=cached)
        reason = pb.FINISH_REASON_LENGTH if stop_id is None else pb.FINISH_REASON_STOP
        yield pb.GenerateResponse(
            finished=pb.Finished(reason=reason, stop_token_id=stop_id, usage=usage, timings=pb.Timings(num_rounds=1))
        )

    def _next_token(self, request: pb.GenerateRequest, output: Sequence[int], seed: int) -> int:
        if self.script is None:
            return self.model.draw(request, output, seed)
        tokens = self.script(request)
        return tokens[len(output)] if len(output) < len(tokens) else self.model.eos_token_ids[0]

    def _check(self, request: pb.GenerateRequest) -> None:
        sampling, model = request.sampling, self.model
        tops = (("logprobs.num_top", request.logprobs), ("prompt_logprobs.num_top", request.prompt_logprobs))
        repetition = sampling.repetition_penalty if sampling.HasField("repetition_penalty") else 1.0
        most_tokens = request.limits.max_tokens + request.num_prior_output_tokens
        problems = {
            "request_id": not request.request_id or request.request_id in self.running,
            "prompt_token_ids": not request.prompt_token_ids
            or any(token_id >= model.vocabulary_size for token_id in request.prompt_token_ids),
            "num_prior_output_tokens": request.num_prior_output_tokens >= max(1, len(request.prompt_token_ids)),
            "limits.stop_token_ids": any(
                token_id >= model.vocabulary_size for token_id in request.limits.stop_token_ids
            ),
            "sampling.temperature": not 0 <= sampling.temperature < float("inf"),
            "sampling.top_p": sampling.HasField("top_p") and not 0 < sampling.top_p <= 1,
            "sampling.min_p": not 0 <= sampling.min_p <= 1,
            "priority": request.priority not in pb.Priority.values(),
            "sampling.repetition_penalty": not 0 < repetition < float("inf"),
            "sampling.frequency_penalty": not -2 <= sampling.frequency_penalty <= 2,
            "sampling.presence_penalty": not -2 <= sampling.presence_penalty <= 2,
            "sampling.logit_bias": any(
                token_id >= model.vocabulary_size or not -100 <= bias <= 100
                for token_id, bias in sampling.logit_bias.items()
            ),
            "limits.min_tokens": request.limits.min_tokens > most_tokens
            or (request.HasField("grammar") and request.limits.min_tokens > 0)
            or (
                request.limits.min_tokens > request.num_prior_output_tokens
                and len({*request.limits.stop_token_ids, *model.eos_token_ids, *model.masked_ids})
                >= model.vocabulary_size
            ),
            "images": bool(request.images),
            **_grammar_problems(request),
            **{name: params.num_top > model.max_top_logprobs for name, params in tops},
        }
        for name, is_wrong in problems.items():
            if is_wrong:
                raise InvalidFieldError(f"{name}: is out of range", field=name)
        if request.HasField("grammar") and not self.has_grammar_service:
            raise GrammarUnavailableError("grammar: the engine has no grammar service")
        if len(request.prompt_token_ids) + request.limits.max_tokens > model.context_length:
            raise ContextTooLongError(f"prompt and max_tokens exceed the context of {model.context_length} tokens")
        if self.state != pb.ENGINE_STATE_SERVING:
            raise RankLostError("the engine takes no requests")
        if len(self.waiting) >= self.queue_limit and len(self.running) >= model.num_slots:
            raise QueueFullError(f"{self.queue_limit} requests wait already")


def _grammar_problems(request: pb.GenerateRequest) -> dict[str, bool]:
    if not request.HasField("grammar"):
        return {}
    grammar = request.grammar
    return {
        "grammar.handle": not grammar.handle,
        "grammar.kind": grammar.kind == 0 or grammar.kind not in grammar_pb2.GrammarKind.values(),
        "grammar.start": grammar.start not in pb.GrammarStart.values(),
        "limits.ignore_eos": request.limits.ignore_eos,
    }


@asynccontextmanager
async def serve_engine(engine: FakeEngine, port: int = 0) -> AsyncIterator[str]:
    """Serve the fake on loopback; give its address."""
    server = RpcServer("engine", ListenSettings(port=port, drain_seconds=0), CollectorRegistry())
    server.add(engine_pb2_grpc.add_EngineServiceServicer_to_server, engine, SERVICE)
    await server.start()
    await server.set_serving(True)
    try:
        yield f"127.0.0.1:{server.port}"
    finally:
        await server.stop()
