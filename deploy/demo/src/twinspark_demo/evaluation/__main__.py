"""`python -m twinspark_demo.evaluation`: scores a running server; exit status 1 if it is not good enough."""

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import openai
import typer
from openai import AsyncOpenAI

from twinspark_demo.evaluation.drawing import COUNT, SEED, draw_prompts, expand_kinds
from twinspark_demo.evaluation.filler import SAMPLE_SENTENCES, TOKENS_PER_SENTENCE, sample_text
from twinspark_demo.evaluation.report import (
    build_report,
    format_failures,
    format_table,
    is_good_enough,
    prepare_file,
)
from twinspark_demo.evaluation.scoring import KindScore, score_kind
from twinspark_demo.evaluation.server import Server, root_address

TIMEOUT_SECONDS = 600


class EvaluationError(Exception):
    """The server cannot be scored; the message says what to change."""


def main(
    base_url: Annotated[
        str, typer.Option(help="Address of the server; /v1 may stand behind it.")
    ] = "http://127.0.0.1:8000",
    kinds: Annotated[str, typer.Option(help="Kinds, separated by commas; empty: all.")] = "",
    count: Annotated[int, typer.Option(min=1, help="Prompts of each kind.")] = COUNT,
    seed: Annotated[int, typer.Option(help="Another seed, other prompts.")] = SEED,
    json_file: Annotated[Path | None, typer.Option("--json", help="File for the report as JSON.")] = None,
    api_key: Annotated[str, typer.Option(help="Key, if the server asks for one.")] = "none",
) -> None:
    """Score the answers of a running server."""
    try:
        address = root_address(base_url)
        settings = {"base_url": address, "count": count, "seed": seed}
        if json_file is not None:
            prepare_file(json_file)
        names = expand_kinds(kinds)
        scores, served = asyncio.run(_score(address, api_key, names, settings))
    except openai.APIConnectionError:
        sys.exit(f"no server answers at {base_url}: start one with `make run`, or give BASE_URL=")
    except openai.APIStatusError as error:
        sys.exit(f"{base_url} answered {error.status_code}: {error.message}")
    except (EvaluationError, ValueError) as error:
        sys.exit(str(error))
    print(format_table(scores))
    sys.stdout.flush()
    print(format_failures(scores), file=sys.stderr)
    if json_file is not None:
        report = build_report(scores, settings, served)
        json_file.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    raise typer.Exit(0 if is_good_enough(scores) else 1)


async def _score(
    base_url: str, api_key: str, names: Sequence[str], settings: dict[str, Any]
) -> tuple[list[KindScore], Mapping[str, Any]]:
    """Scores in order of names, and what the server says of itself."""
    async with AsyncOpenAI(
        base_url=f"{base_url}/v1", api_key=api_key, max_retries=0, timeout=TIMEOUT_SECONDS
    ) as client:
        served = (await client.models.list()).data[0]
        server = Server(client, served.id)
        if not await server.is_ready():
            raise EvaluationError(f"the server at {base_url} is not ready: wait until its /health answers 200")
        settings["tokens_per_filler_sentence"] = await _measure_filler(server)
        scores = []
        for name in names:
            prompts = draw_prompts(name, settings["count"], settings["seed"], settings["tokens_per_filler_sentence"])
            scores.append(await score_kind(server, name, prompts, settings["seed"]))
            print(f"[evaluation] {name}: {scores[-1].seconds:.1f} s", file=sys.stderr)
    return scores, served.model_dump(mode="json")


async def _measure_filler(server: Server) -> float:
    """Tokens of a filler sentence with the server's tokenizer."""
    count = await server.count_tokens(sample_text())
    return TOKENS_PER_SENTENCE if count is None else count / SAMPLE_SENTENCES


if __name__ == "__main__":
    typer.run(main)
