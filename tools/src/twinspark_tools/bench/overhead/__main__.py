"""`python -m twinspark_tools.bench.overhead`: JSON on stdout, then a table on stderr.

Three runs of a gateway over the paced engine, each process its own: at the pace (what the gateway adds), without a pace
(what it can carry), and at the pace under cProfile (where the time goes; its own cost makes that run's figures shares
only). Wants a machine that does nothing else.
"""

import asyncio
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import psutil
import typer
from tokenizers import Tokenizer

from twinspark_tools.bench.machine import describe_machine, describe_versions, find_commit
from twinspark_tools.bench.overhead.profile import read_profile
from twinspark_tools.bench.overhead.readers import read_streams
from twinspark_tools.launch.model_folder import find_model
from twinspark_tools.launch.ports import pick_free

TEXT = " the old house by the sea is empty now"
START_SECONDS = 60.0


def main(
    model: Annotated[Path | None, typer.Option(help="Checkpoint folder; the demo model without it.")] = None,
    streams: Annotated[int, typer.Option(min=1, help="Streams at once.")] = 64,
    rate: Annotated[float, typer.Option(min=0.1, help="Tokens a second of each stream.")] = 50.0,
    seconds: Annotated[float, typer.Option(min=0.1, help="Length of each stream.")] = 20.0,
) -> None:
    """Measure."""
    folder = find_model(model, Path.cwd())
    num_tokens = max(2, int(rate * seconds))
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        paced = run(folder, place, streams, num_tokens, rate)
        free = run(folder, place, streams, num_tokens, 0)
        run(folder, place, streams, num_tokens, rate, profile=place / "profile")
        packages, functions = read_profile(place / "profile")
    report = {
        "commit": find_commit(),
        "machine": describe_machine(),
        "versions": describe_versions(),
        "streams": streams,
        "tokens_per_second_each": rate,
        "paced": paced,
        "unpaced": free,
        "profile": {"packages": dict(packages), "functions": dict(functions)},
        "next_bottleneck": packages[0][0],
    }
    print(json.dumps(report, indent=2))
    sys.stdout.flush()
    print(format_report(report), file=sys.stderr)


def run(
    folder: Path, place: Path, num_streams: int, num_tokens: int, rate: float, profile: Path | None = None
) -> dict[str, Any]:
    """Start both processes, read the streams, stop both; give the figures."""
    engine_port, port = pick_free(2)
    tokens = ",".join(map(str, Tokenizer.from_file(str(folder / "tokenizer.json")).encode(TEXT).ids))
    times = place / "times.json"
    engine = ["--port", str(engine_port), "--tokens", tokens, "--rate", str(rate), "--times", str(times)]
    settings = {"MODEL": folder, "PORT": port, "ENGINE": f"127.0.0.1:{engine_port}", "LOG_LEVEL": "warning"}
    environment = os.environ | {f"TWINSPARK_GATEWAY_{name}": str(value) for name, value in settings.items()}
    gateway = [f"{__package__}.profiled_gateway", str(profile)] if profile is not None else ["twinspark_gateway"]
    with (
        process(["-m", f"{__package__}.paced_engine", *engine], environment) as engine_process,
        process(["-m", *gateway], environment) as gateway_process,
    ):
        wait_healthy(port, gateway_process)
        if profile is not None:
            gateway_process.send_signal(signal.SIGUSR1)
        watched = [psutil.Process(found.pid) for found in (gateway_process, engine_process)]
        before = [sum(found.cpu_times()[:2]) for found in watched]
        started = time.monotonic()
        stagger = 1 / rate / num_streams if rate else 0.0
        read = asyncio.run(read_streams(port, num_streams, num_tokens, stagger))
        elapsed = time.monotonic() - started
        used = [sum(found.cpu_times()[:2]) - first for found, first in zip(watched, before, strict=True)]
    return summarize(json.loads(times.read_text()), read, num_tokens) | {
        "gateway_cpu_share": round(used[0] / elapsed, 3),
        "engine_cpu_share": round(used[1] / elapsed, 3),
    }


@contextlib.contextmanager
def process(arguments: list[str], environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run Python with arguments; SIGTERM ends it."""
    started = subprocess.Popen([sys.executable, *arguments], env=environment, stdout=subprocess.DEVNULL)
    try:
        yield started
    finally:
        started.send_signal(signal.SIGTERM)
        try:
            started.wait(START_SECONDS)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()


def wait_healthy(port: int, gateway: subprocess.Popen[bytes]) -> None:
    """Return once /health is 200."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and gateway.poll() is None:
        with contextlib.suppress(OSError, urllib.error.URLError):
            if urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).status == 200:
                return
        time.sleep(0.05)
    sys.exit("the gateway did not become healthy")


def summarize(sent: dict[str, list[float]], read: dict[str, list[float]], num_tokens: int) -> dict[str, Any]:
    """Match sends and reads by stream and position. The rate is that of all tokens, from the first read to the last."""
    for request_id, times in read.items():
        if len(times) != num_tokens or len(sent[request_id]) != num_tokens:
            sys.exit(f"{request_id}: {len(sent[request_id])} tokens were sent, {len(times)} read, not {num_tokens}")
    added = sorted(late - early for name, times in read.items() for early, late in zip(sent[name], times, strict=True))
    span = max(times[-1] for times in read.values()) - min(times[0] for times in read.values())
    return {
        "tokens": len(added),
        "added_ms_median": round(statistics.median(added) * 1000, 3),
        "added_ms_p99": round(added[int(len(added) * 0.99)] * 1000, 3),
        "added_ms_max": round(added[-1] * 1000, 3),
        "tokens_per_second": round(len(added) / max(span, 1e-9), 1),
    }


def format_report(report: dict[str, Any]) -> str:
    """Give a table for people."""
    paced, free, machine = report["paced"], report["unpaced"], report["machine"]
    offered = report["streams"] * report["tokens_per_second_each"]
    lines = [
        f"{report['streams']} streams x {report['tokens_per_second_each']:g} tokens/s on {machine['cores']} cores"
        f" (load average {machine['load_average']:.1f})",
        f"added: median {paced['added_ms_median']} ms, p99 {paced['added_ms_p99']} ms, max {paced['added_ms_max']} ms"
        f" at {paced['tokens_per_second']} of {offered:g} tokens/s; gateway {paced['gateway_cpu_share']:.0%} of a core",
        f"without a pace: {free['tokens_per_second']} tokens/s; gateway {free['gateway_cpu_share']:.0%} of a core,"
        f" engine {free['engine_cpu_share']:.0%}",
        f"next bottleneck: {report['next_bottleneck']}",
        "share of the gateway's time by package:",
        *(f"  {share:6.1%}  {name}" for name, share in list(report["profile"]["packages"].items())[:10]),
        "by function:",
        *(f"  {share:6.1%}  {name}" for name, share in report["profile"]["functions"].items()),
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    typer.run(main)
