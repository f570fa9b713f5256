"""`python -m twinspark_tools.bench --base-url http://127.0.0.1:8000`: JSON on stdout, then a table on stderr."""

import datetime
import sys
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import openai
import typer
from openai import AsyncOpenAI

from twinspark_tools.bench.machine import describe_machine, describe_versions, find_commit
from twinspark_tools.bench.measures import Bench, BenchSizes
from twinspark_tools.bench.memory import measure_processes
from twinspark_tools.bench.report import print_report
from twinspark_tools.bench.table import format_report
from twinspark_tools.bench.timed_stream import Server


def main(
    base_url: Annotated[str, typer.Option(help="Address of the server, without /v1.")] = "http://127.0.0.1:8000",
    api_key: Annotated[str, typer.Option(help="Key, if the server asks for one.")] = "none",
    runs: Annotated[int, typer.Option(min=1, help="Runs of each measure; the median is reported.")] = 3,
    decode_tokens: Annotated[int, typer.Option(min=2, help="Output tokens of a decode run.")] = 128,
    prefill_tokens: Annotated[str, typer.Option(help="Prompt lengths, separated by commas.")] = "512,2048",
    streams: Annotated[int, typer.Option(min=1, help="Streams at once.")] = 4,
    turns: Annotated[int, typer.Option(min=1, help="Turns of the replayed conversation.")] = 6,
    beside_tokens: Annotated[int, typer.Option(min=1, help="Prompt beside which a short one is asked.")] = 8000,
) -> None:
    """Measure a running server."""
    lengths = [int(length) for length in prefill_tokens.split(",")]
    sizes = BenchSizes(runs, decode_tokens, lengths, streams, turns, beside_tokens)
    print_report(lambda url: measure(url, api_key, sizes), base_url, format_report)


async def measure(base_url: str, api_key: str, sizes: BenchSizes) -> dict[str, Any]:
    """The whole report. A measure that the server refuses is reported with its error; the others go on."""
    async with AsyncOpenAI(base_url=f"{base_url}/v1", api_key=api_key, max_retries=0, timeout=600) as client:
        served = (await client.models.list()).data[0]
        chunk_tokens = (served.model_extra or {})["engine"]["chunk_tokens_alone"]
        bench = Bench(Server(client, served.id), sizes)
        await bench.warm_up()
        planned: list[tuple[str, Callable[[], Awaitable[dict[str, Any]]]]] = [
            ("decode, 1 stream", bench.decode),
            *(
                (f"prefill, {length} tokens", lambda length=length: bench.prefill(length))
                for length in sizes.prefill_tokens
            ),
            (f"decode, {sizes.num_streams} streams", bench.concurrent),
            (f"replay, {sizes.num_turns} turns", bench.replay),
            (f"short beside {sizes.beside_tokens} tokens", lambda: bench.beside_prefill(chunk_tokens)),
        ]
        measures = [await _attempt(name, run) for name, run in planned]
    return {
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": find_commit(),
        "base_url": base_url,
        "model": served.id,
        "fingerprint": getattr(served, "system_fingerprint", None) or "no fingerprint in /v1/models",
        "machine": describe_machine(),
        "versions": describe_versions(),
        "measures": measures,
        "processes": measure_processes(base_url),
    }


async def _attempt(name: str, run: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
    print(f"[bench] {name}", file=sys.stderr)
    try:
        return await run()
    except openai.APIStatusError as error:
        return {"measure": name, "error": f"answered {error.status_code}: {error.message}"}


if __name__ == "__main__":
    typer.run(main)
