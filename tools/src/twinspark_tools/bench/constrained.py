"""`python -m twinspark_tools.bench.constrained --base-url URL`: what constraints cost, as JSON, then a table on stderr.

Each pair of runs asks under a constraint, and then for as many tokens of the same prompts without one.
Rates count the tokens after the first, of all streams together. Meant for the demo model, which writes the records that
it is asked for; another model's replies under the constraint are as long as it likes.
"""

import asyncio
import random
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from openai import AsyncOpenAI
from prometheus_client.parser import text_string_to_metric_families

from twinspark_tools.bench.machine import describe_machine, describe_versions, find_commit
from twinspark_tools.bench.report import print_report
from twinspark_tools.bench.timed_stream import Server, TimedReply

MAX_TOKENS = 400
COUNTERS = {
    "rows": "twinspark_gateway_engine_masked_rows_total",
    "wait_seconds": "twinspark_gateway_engine_mask_wait_seconds_total",
}
RENEWED_SECONDS = 3.0
"""By then the gateway has polled the engine's counters."""
FIELDS: Mapping[str, Any] = {"chat_template_kwargs": {"enable_thinking": False}, "return_token_ids": True}
RECORD = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
SCHEMA = {"name": "records", "schema": {"type": "array", "items": RECORD}, "strict": True}
PATTERN = r"([A-Za-z]{2,20} [0-9]{1,3}[ ,\n]{1,2}){24}done"
SYLLABLES = ("ba", "ko", "lin", "mar", "no", "ri", "sel", "ta", "vu")


@dataclass(frozen=True, slots=True)
class Form:
    """A constraint, with what to ask under it."""

    name: str
    fields: Mapping[str, Any]
    question: str
    """With a place for a list of records."""


FORMS = (
    Form(
        "array of records",
        {"response_format": {"type": "json_schema", "json_schema": SCHEMA}},
        "Turn this into a JSON array with the fields name, age:\n{records}",
    ),
    Form("regex", {"structured_outputs": {"regex": PATTERN}}, "Repeat this: {records}"),
)


def main(
    base_url: Annotated[str, typer.Option(help="Address of the server, without /v1.")] = "http://127.0.0.1:8000",
    api_key: Annotated[str, typer.Option(help="Key, if the server asks for one.")] = "none",
    runs: Annotated[int, typer.Option(min=1, help="Pairs of each form and number of streams.")] = 5,
    streams: Annotated[str, typer.Option(help="Streams at once, separated by commas.")] = "1,4",
) -> None:
    """Measure constrained against unconstrained decoding."""
    counts = [int(count) for count in streams.split(",")]
    print_report(lambda url: measure(url, api_key, runs, counts), base_url, format_report)


async def measure(base_url: str, api_key: str, num_runs: int, counts: Sequence[int]) -> dict[str, Any]:
    """The whole report."""
    async with AsyncOpenAI(base_url=f"{base_url}/v1", api_key=api_key, max_retries=0, timeout=600) as client:
        served = (await client.models.list()).data[0]
        server = Server(client, served.id)
        records = []
        for form in FORMS:
            for count in counts:
                print(f"[constrained] {form.name}, streams: {count}", file=sys.stderr)
                records.append(await _measure_form(server, base_url, form, num_runs, count))
    return {
        "commit": find_commit(),
        "base_url": base_url,
        "fingerprint": getattr(served, "system_fingerprint", None),
        "machine": describe_machine(),
        "versions": describe_versions(),
        "measures": records,
    }


async def _measure_form(server: Server, base_url: str, form: Form, num_runs: int, count: int) -> dict[str, Any]:
    """Pairs of runs; one more before them is not counted, since it pays for compiling."""
    source = random.Random(f"{form.name} {count}")
    before = None
    held_rates, free_rates, tokens, first = [], [], [], []
    for run in range(-1, num_runs):
        prompts = [form.question.format(records=_draw_records(source)) for _ in range(count)]
        if run == 0:
            before = await _read_counters(server, base_url)
        held = await _ask(server, prompts, form.fields, [MAX_TOKENS] * count)
        free = await _ask(server, prompts, {"ignore_eos": True}, [reply.output_tokens for reply in held])
        if run >= 0:
            held_rates.append(_rate(held))
            free_rates.append(_rate(free))
            tokens.append(sum(reply.output_tokens for reply in held))
            first += [a.first_token_seconds - b.first_token_seconds for a, b in zip(held, free, strict=True)]
    after = await _read_counters(server, base_url)
    assert before is not None
    rows, waited = (after[name] - before[name] for name in ("rows", "wait_seconds"))
    return {
        "form": form.name,
        "streams": count,
        "pairs": num_runs,
        "output_tokens": statistics.median(tokens),
        "constrained_tokens_per_second": statistics.median(held_rates),
        "unconstrained_tokens_per_second": statistics.median(free_rates),
        "ratio": statistics.median(held / free for held, free in zip(held_rates, free_rates, strict=True)),
        "first_token_later_ms": 1000 * statistics.median(first),
        "masked_rows": rows,
        "exposed_wait_us_a_row": 1e6 * waited / rows if rows else None,
    }


async def _ask(
    server: Server, prompts: Sequence[str], fields: Mapping[str, Any], lengths: Sequence[int]
) -> list[TimedReply]:
    asked = [
        server.chat([{"role": "user", "content": prompt}], length, {**FIELDS, **fields})
        for prompt, length in zip(prompts, lengths, strict=True)
    ]
    return await asyncio.gather(*asked)


def _rate(replies: Sequence[TimedReply]) -> float:
    """Tokens a second, of each stream's own decoding time, summed over the streams."""
    return sum(reply.decode_rate for reply in replies)


def _draw_records(source: random.Random) -> str:
    names = ["".join(source.choice(SYLLABLES) for _ in range(3)).capitalize() for _ in range(12)]
    return "\n".join(f"{name} {source.randrange(10, 90)}" for name in names)


async def _read_counters(server: Server, base_url: str) -> dict[str, float]:
    """The engine's counters, when the gateway has had time to learn them."""
    await asyncio.sleep(RENEWED_SECONDS)
    text = await server.client.get(f"{base_url}/metrics", cast_to=str)
    samples = {
        sample.name: sample.value for family in text_string_to_metric_families(text) for sample in family.samples
    }
    return {name: samples[counter] for name, counter in COUNTERS.items()}


def format_report(report: Mapping[str, Any]) -> str:
    """A line a form and number of streams, then where it ran."""
    lines = [f"{'form':<20}{'streams':>8}{'tokens':>8}{'held/s':>9}{'free/s':>9}{'ratio':>8}   exposed wait a row"]
    for record in report["measures"]:
        numbers = f"{record['streams']:>8}{record['output_tokens']:>8.0f}"
        rates = f"{record['constrained_tokens_per_second']:>9.1f}{record['unconstrained_tokens_per_second']:>9.1f}"
        wait = record["exposed_wait_us_a_row"]
        shown = "no masked row" if wait is None else f"{wait:.1f} us"
        lines.append(f"{record['form']:<20}{numbers}{rates}{record['ratio']:>8.3f}   {shown}")
    machine = report["machine"]
    lines.append(f"{machine['cpu']}, {machine['cores']} cores, load {machine['load_average']:.1f}")
    lines.append(f"{report['fingerprint']}, commit {report['commit'] or 'unknown'}")
    return "\n".join(lines)


if __name__ == "__main__":
    typer.run(main)
