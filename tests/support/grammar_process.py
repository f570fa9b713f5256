"""The grammar service as a process, and a client of it."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from support.free_ports import pick_free_ports
from support.grammar_texts import DEMO, ROOM, demo_grammars
from support.waiting import eventually
from twinspark.grammar.v1 import grammar_pb2 as pb
from twinspark.grammar.v1.grammar_pb2_grpc import GrammarServiceStub
from twinspark_rpc import ChannelSettings, open_channel

SERVING = health_pb2.HealthCheckResponse.SERVING


class _Settings(ChannelSettings):
    pass


def write(source: Any) -> str:
    """Give a source as text."""
    return source if isinstance(source, str) else json.dumps(source)


class MaskStream:
    """One Mask stream."""

    def __init__(self, stub: GrammarServiceStub) -> None:
        mask: Any = stub.Mask  # its type wants an iterator
        self._call = mask()
        self._round = 0

    async def open(self, opened: pb.MaskOpen) -> None:
        """Send the first message and wait for its answer."""
        await self._call.write(pb.MaskRequest(open=opened))
        assert await self._call.read() == pb.MaskResponse()

    async def send(self, committed: Sequence[int] = (), drafts: Sequence[int] = ()) -> pb.MaskResponse:
        """Send one window and wait for its masks."""
        window = pb.MaskWindow(round=self._round, committed_token_ids=committed, draft_token_ids=drafts)
        self._round += 1
        await self._call.write(pb.MaskRequest(window=window))
        response = await self._call.read()
        assert isinstance(response, pb.MaskResponse)
        return response

    async def close(self) -> None:
        """Say that nothing follows, and wait for the end."""
        await self._call.done_writing()
        assert await self._call.read() is grpc.aio.EOF


class GrammarProcess:
    """A running service. `size`: rows of the demo model."""

    size = len(demo_grammars().vocabulary.token_bytes) + ROOM

    def __init__(self, port: int, **settings: Any) -> None:
        values = {"MODEL": DEMO, "PORT": port, "LOG_LEVEL": "debug", "DRAIN_SECONDS": 30} | settings
        variables = {f"TWINSPARK_GRAMMAR_{name}": str(value) for name, value in values.items()}
        command = [sys.executable, "-m", "twinspark_grammar"]
        # A file: nobody reads while the service runs, and a full pipe would stop it.
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.process = subprocess.Popen(command, env=os.environ | variables, stdout=self._log)
        self.channel = open_channel(f"127.0.0.1:{port or 1}", _Settings(), max_backoff_seconds=0.2)
        self.stub = GrammarServiceStub(self.channel)

    async def is_serving(self) -> bool:
        """Ask the health service; False also where nobody listens."""
        assert self.process.poll() is None, "the service ended"
        try:
            answer = await health_pb2_grpc.HealthStub(self.channel).Check(health_pb2.HealthCheckRequest())
        except grpc.aio.AioRpcError:
            return False
        return bool(answer.status == SERVING)

    async def wait_serving(self) -> None:
        """Wait until calls are taken."""
        while not await self.is_serving():
            await asyncio.sleep(0.05)

    async def compile(self, kind: int, source: Any, *, strict: bool = False) -> pb.CompileResponse:
        """Compile; raises AioRpcError."""
        grammar = pb.Grammar(kind=kind, source=write(source))  # type: ignore[arg-type]
        response: pb.CompileResponse = await self.stub.Compile(pb.CompileRequest(grammar=grammar, strict=strict))
        return response

    async def stats(self) -> pb.GetStatsResponse:
        """Ask for the counters."""
        response: pb.GetStatsResponse = await self.stub.GetStats(pb.GetStatsRequest())
        return response

    async def open(self, kind: int, source: Any, handle: str, **fields: Any) -> MaskStream:
        """Open a Mask stream."""
        grammar = pb.Grammar(kind=kind, source=write(source), handle=handle)  # type: ignore[arg-type]
        values = {"vocabulary_size": self.size, "stop_token_ids": [demo_grammars().end]} | fields
        stream = MaskStream(self.stub)
        await stream.open(pb.MaskOpen(grammar=grammar, **values))  # type: ignore[arg-type]
        return stream

    def read_log(self) -> list[dict[str, Any]]:
        """Give the lines of the log; the process must have ended."""
        self._log.seek(0)
        return [json.loads(line) for line in self._log.read().splitlines() if line.startswith("{")]

    def terminate(self) -> None:
        """Ask it to drain and end."""
        self.process.send_signal(signal.SIGTERM)

    async def wait_ended(self) -> int:
        """Wait for the end; gives the exit code."""
        await eventually(lambda: self.process.poll() is not None, "the service does not end")
        return int(self.process.returncode)


@asynccontextmanager
async def run_grammar(port: int = 0, **settings: Any) -> AsyncIterator[GrammarProcess]:
    """Run the service until it serves, on a port that is picked if none is given; it is killed at the end."""
    service = GrammarProcess(port or pick_free_ports(1)[0], **settings)
    try:
        await asyncio.wait_for(service.wait_serving(), 60)
        yield service
    finally:
        await service.channel.close()
        service.process.kill()
        service.process.wait()
