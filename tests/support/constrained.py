"""A gateway's surroundings for constrained replies: the grammar service with the tiny tokenizer, and an engine."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from fakes.constrained_engine import ConstrainedEngine
from fakes.engine_model import FakeModel
from support.free_ports import pick_free_ports
from support.scripted_replies import encode_bytes, segments
from support.scripts import encode
from support.waiting import wait_until
from twinspark.engine.v1 import engine_pb2 as pb

SERVING = health_pb2.HealthCheckResponse.SERVING
# What ends values soonest. Markers first: they are allowed only where they are due.
CLOSERS = ("</think>", "</tool_call>", "</arg_key>", "</arg_value>", "<arg_value>", '"', "}", "]", ",", "n", "1", "a")
CLOSING = [encode(text)[0] for text in CLOSERS]


@contextmanager
def run_grammar_service(model: Path, port: int = 0) -> Iterator[str]:
    """Run the service in a process of its own until it serves; give its address. It is killed at the end."""
    port = port or pick_free_ports(1)[0]
    values = {"MODEL": model, "PORT": port, "LOG_LEVEL": "warning", "DRAIN_SECONDS": 0}
    variables = {f"TWINSPARK_GRAMMAR_{name}": str(value) for name, value in values.items()}
    process = subprocess.Popen([sys.executable, "-m", "twinspark_grammar"], env=os.environ | variables)
    try:
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            wait_until(lambda: _is_serving(channel), "the grammar service serves")
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def _is_serving(channel: grpc.Channel) -> bool:
    try:
        answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
    except grpc.RpcError:
        return False
    return bool(answer.status == SERVING)


def saying(text: str) -> Callable[[pb.GenerateRequest], Sequence[int]]:
    """Want to say a text, as far as masks allow it; spelled tokens become tokens, but where U+FDD0 is inside them."""
    parts = segments(text)
    ids = [token for part, is_markup in parts for token in (encode(part) if is_markup else encode_bytes(part.encode()))]
    return lambda request: ids


def build_engine(grammar: str, *, want: str = "", **fields: Any) -> ConstrainedEngine:
    """An engine of 8,192 tokens of context that wants to say a text."""
    model = FakeModel(context_length=8192, num_slots=4)
    return ConstrainedEngine(model, grammar=grammar, closing=CLOSING, wanted=saying(want), **fields)


def source_of(request: pb.GenerateRequest) -> Any:
    """The grammar's source, which is JSON."""
    return json.loads(request.grammar.source)
