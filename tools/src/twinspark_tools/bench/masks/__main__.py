"""`python -m twinspark_tools.bench.masks [MODEL]`: the grammar service's numbers as JSON, then as a table on stderr.

Starts the service on a generated tokenizer of GLM's size, or on a checkpoint folder, and asks it through gRPC as engine
and gateway do. Times of masks are round trips: what a rank would wait if it had nothing else to do.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import grpc
import psutil
import typer
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub
from tokenizers import Tokenizer

from twinspark.grammar.v1 import grammar_pb2 as pb
from twinspark.grammar.v1.grammar_pb2_grpc import GrammarServiceStub
from twinspark_tools.bench.machine import describe_machine, describe_versions, find_commit
from twinspark_tools.bench.masks.cases import Case, build_cases
from twinspark_tools.bench.masks.large_tokenizer import large_tokenizer_json
from twinspark_tools.launch.ports import LOOPBACK, pick_free

if TYPE_CHECKING:
    from twinspark.grammar.v1.grammar_pb2_grpc import GrammarServiceAsyncStub

POLL_SECONDS = 0.02
ROOM = 24
"""Rows of the model behind the tokenizer's last id."""
END = "<|endoftext|>"


@dataclass(frozen=True, slots=True)
class Service:
    """A running service; `seconds`: until it served."""

    stub: "GrammarServiceAsyncStub"
    process: psutil.Process
    seconds: float
    tokenizer: Tokenizer


def main(
    model: Annotated[Path | None, typer.Argument(help="Checkpoint folder; none: a tokenizer of GLM's size.")] = None,
    rows: Annotated[int, typer.Option(min=1, help="Masks of each case and window, at least.")] = 1000,
    draft_tokens: Annotated[int, typer.Option(min=1, max=64, help="Drafts of the longer windows.")] = 7,
) -> None:
    """Measure the grammar service alone."""
    with tempfile.TemporaryDirectory() as made:
        if model is None:
            model = Path(made)
            (model / "tokenizer.json").write_text(large_tokenizer_json(), encoding="utf-8")
        report = asyncio.run(measure(model, rows, draft_tokens))
    print(json.dumps(report, indent=2))
    sys.stdout.flush()
    print(f"\n{format_report(report)}", file=sys.stderr)


async def measure(model: Path, num_rows: int, num_drafts: int) -> dict[str, Any]:
    """The whole report."""
    async with _run_service(model) as service:
        idle = _resident(service.process)
        cases = [await _measure_case(service, case, num_rows, num_drafts) for case in build_cases()]
        return {
            "commit": find_commit(),
            "machine": describe_machine(),
            "versions": describe_versions(),
            "tokens": service.tokenizer.get_vocab_size(),
            "seconds_until_serving": service.seconds,
            "resident_bytes": {"idle": idle, "after": _resident(service.process)},
            "cases": cases,
        }


async def _measure_case(service: Service, case: Case, num_rows: int, num_drafts: int) -> dict[str, Any]:
    print(f"[masks] {case.name}", file=sys.stderr)
    started = time.perf_counter()
    grammar = pb.Grammar(kind=case.kind, source=case.source)
    compiled = await service.stub.Compile(pb.CompileRequest(grammar=grammar))
    waited = time.perf_counter() - started
    grammar.handle = compiled.handle
    before: pb.GetStatsResponse = await service.stub.GetStats(pb.GetStatsRequest())
    tokens = service.tokenizer.encode(case.output, add_special_tokens=False).ids
    one = await _walk(service, grammar, tokens, num_rows, 0)
    several = await _walk(service, grammar, tokens, num_rows, num_drafts)
    after: pb.GetStatsResponse = await service.stub.GetStats(pb.GetStatsRequest())
    return {
        "case": case.name,
        "compile_ms": 1000 * waited,
        "compiler_ms": compiled.compile_us / 1000,
        "output_tokens": len(tokens),
        "row_us": (after.mask_us_total - before.mask_us_total) / (after.masks_total - before.masks_total),
        "one_row_us": _percentiles(one),
        "rows_of_window": num_drafts + 1,
        "window_us": _percentiles(several),
    }


async def _walk(
    service: Service, grammar: pb.Grammar, tokens: Sequence[int], num_rows: int, num_drafts: int
) -> list[float]:
    """Round trips in microseconds: streams along the output, one committed token a round, full windows only."""
    times: list[float] = []
    while len(times) * (num_drafts + 1) < num_rows:
        mask: Any = service.stub.Mask  # its type wants an iterator
        call = mask()
        await call.write(pb.MaskRequest(open=_open(service, grammar)))
        await call.read()
        for place in range(max(1, len(tokens) - num_drafts + 1)):
            drafts = tokens[place : place + num_drafts]
            window = pb.MaskWindow(
                round=place, committed_token_ids=tokens[place - 1 : place] if place else (), draft_token_ids=drafts
            )
            started = time.perf_counter()
            await call.write(pb.MaskRequest(window=window))
            answer = await call.read()
            times.append(1e6 * (time.perf_counter() - started))
            if answer.num_allowed_drafts != len(drafts):
                raise ValueError("the output is none of the grammar's")
        call.cancel()
    return times


def _open(service: Service, grammar: pb.Grammar) -> pb.MaskOpen:
    end = service.tokenizer.encode(END, add_special_tokens=False).ids
    size = service.tokenizer.get_vocab_size() + ROOM
    return pb.MaskOpen(grammar=grammar, vocabulary_size=size, stop_token_ids=end)


@asynccontextmanager
async def _run_service(model: Path) -> AsyncIterator[Service]:
    port = pick_free(1)[0]
    started = time.perf_counter()
    process = _start(model, port)
    try:
        async with grpc.aio.insecure_channel(f"{LOOPBACK}:{port}") as channel:
            await _wait_serving(process, channel)
            seconds = time.perf_counter() - started
            tokenizer = await asyncio.to_thread(Tokenizer.from_file, str(model / "tokenizer.json"))
            yield Service(GrammarServiceStub(channel), psutil.Process(process.pid), seconds, tokenizer)
    finally:
        process.terminate()
        process.wait()


def _start(model: Path, port: int) -> "subprocess.Popen[bytes]":
    own = {"TWINSPARK_GRAMMAR_MODEL": str(model), "TWINSPARK_GRAMMAR_PORT": str(port)}
    command = [sys.executable, "-m", "twinspark_grammar"]
    return subprocess.Popen(command, env=os.environ | own, stdout=subprocess.DEVNULL)


async def _wait_serving(process: "subprocess.Popen[bytes]", channel: grpc.aio.Channel) -> None:
    while process.poll() is None:
        try:
            if (await HealthStub(channel).Check(HealthCheckRequest())).status == HealthCheckResponse.SERVING:
                return
        except grpc.aio.AioRpcError:
            pass
        await asyncio.sleep(POLL_SECONDS)
    raise SystemExit(f"the grammar service ended with {process.returncode}")


def _resident(process: psutil.Process) -> dict[str, int]:
    """Of the service, and of its compiler host, in bytes."""
    hosts = sum(child.memory_info().rss for child in process.children(recursive=True))
    return {"service": process.memory_info().rss, "compiler_host": hosts}


def _percentiles(times: Sequence[float]) -> dict[str, float]:
    ordered = sorted(times)
    return {"p50": statistics.median(ordered), "p99": ordered[int(0.99 * (len(ordered) - 1))]}


def format_report(report: dict[str, Any]) -> str:
    """A line a case, then memory and machine."""
    head = f"{'grammar':<22}{'compile':>11}{'a row':>11}{'1 row p50':>12}{'p99':>11}"
    lines = [head + "".join(f"{name:>12}" for name in ("window p50", "p99"))]
    for case in report["cases"]:
        one, window = case["one_row_us"], case["window_us"]
        cells = (case["row_us"], one["p50"], one["p99"], window["p50"], window["p99"])
        lines.append(f"{case['case']:<22}{case['compile_ms']:>8.1f} ms" + "".join(f"{c:>9.0f} us" for c in cells))
    machine = report["machine"]
    lines.append(f"{report['tokens']} tokens; serves after {report['seconds_until_serving']:.1f} s")
    for when, bytes_of in report["resident_bytes"].items():
        lines.append(f"resident, {when}: " + ", ".join(f"{who} {n / 2**20:.0f} MiB" for who, n in bytes_of.items()))
    lines.append(f"{machine['cpu']}, {machine['cores']} cores, load {machine['load_average']:.1f}")
    return "\n".join(lines)


if __name__ == "__main__":
    typer.run(main)
