"""GrammarService as the gateway calls it: constraints in, handles out, refusals as HTTP errors."""

import re
import time
from collections.abc import Callable

import grpc

from twinspark.grammar.v1 import grammar_pb2 as pb
from twinspark.grammar.v1 import grammar_pb2_grpc
from twinspark_gateway.constraint import Compiled, Constraint, Gap
from twinspark_gateway.errors import ApiError, grammar_unavailable, internal_failure, invalid
from twinspark_rpc import ChannelSettings, open_channel, read_status, request_metadata

_TOOL = re.compile(r"/tools/(\d+)/")
# Told of every call of Compile: its outcome (compiled, refused, unavailable, failed) and its seconds.
NoteCompile = Callable[[str, float], None]


class GrammarClient:
    """One channel to the grammar service. Used from the event loop only; it connects when first called."""

    def __init__(
        self, address: str, settings: ChannelSettings, *, timeout_seconds: float, note_compile: NoteCompile
    ) -> None:
        self._channel = open_channel(address, settings)
        self._stub: grammar_pb2_grpc.GrammarServiceAsyncStub = grammar_pb2_grpc.GrammarServiceStub(self._channel)
        self._timeout = timeout_seconds
        self._note_compile = note_compile

    async def close(self) -> None:
        """Close the channel; running calls are cancelled."""
        await self._channel.close()

    async def compile(self, constraint: Constraint) -> Compiled:
        """Compile, or learn that it is compiled. Raises ApiError: a 400 with the compiler's reason, or a 503."""
        grammar = pb.Grammar(kind=constraint.kind.value, source=constraint.source)  # type: ignore[arg-type]
        request = pb.CompileRequest(grammar=grammar, strict=constraint.strict)
        started = time.perf_counter()
        outcome = "failed"
        try:
            response = await self._stub.Compile(request, timeout=self._timeout, metadata=request_metadata())
            outcome = "compiled"
        except grpc.aio.AioRpcError as error:
            refusal = _refusal(error, constraint)
            outcome = {400: "refused", 503: "unavailable"}.get(refusal.status, "failed")
            raise refusal from error
        finally:
            self._note_compile(outcome, time.perf_counter() - started)
        return Compiled(response.handle, tuple(Gap(gap.keyword, gap.path) for gap in response.unenforced))

    async def is_serving(self) -> bool:
        """Ask whether calls are taken."""
        try:
            stats = await self._stub.GetStats(pb.GetStatsRequest(), timeout=self._timeout)
        except grpc.aio.AioRpcError:
            return False
        return bool(stats.serving)


def _refusal(error: grpc.aio.AioRpcError, constraint: Constraint) -> ApiError:
    status = read_status(error)
    match status.code:
        case grpc.StatusCode.INVALID_ARGUMENT:
            return _invalid(status.message, constraint)
        case grpc.StatusCode.RESOURCE_EXHAUSTED:
            return grammar_unavailable("too many grammars wait to be compiled")
        case grpc.StatusCode.UNAVAILABLE:
            return grammar_unavailable("the grammar service takes no calls")
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return grammar_unavailable("the grammar service did not answer in time")
        case _:
            return internal_failure()


def _invalid(message: str, constraint: Constraint) -> ApiError:
    """Build the 400: the compiler's reason, its tools by their places in the request."""
    positions = constraint.tool_positions
    if positions:
        message = _TOOL.sub(lambda match: f"/tools/{positions[int(match[1])]}/", message)
    field = constraint.where.partition(".")[0]
    return invalid(field, f"'{constraint.where}' is refused: {message}.", code="invalid_value")
