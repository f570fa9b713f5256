"""`python -m twinspark_tools.gates --base-url http://127.0.0.1:8000`: one line a gate, then their count.

Exits with 1 if a gate failed. A gate that is answered with an error has failed.
"""

import asyncio
import sys
import time
from pathlib import Path
from typing import Annotated

import openai
import typer

from twinspark_tools.gates.catalog import GATES
from twinspark_tools.gates.outcome import Outcome, Verdict, failed
from twinspark_tools.gates.server import NotDescribedError, Server, open_server
from twinspark_tools.gates.table import HEADER, Row, format_counts, format_row

RECORDS = Path("build/gates")
"""From the root of the repository, where make runs."""


def main(
    base_url: Annotated[str, typer.Option(help="Address of the server, without /v1.")] = "http://127.0.0.1:8000",
    api_key: Annotated[str, typer.Option(help="Key, if the server asks for one.")] = "none",
    only: Annotated[str, typer.Option(help="Gates to run, separated by commas; none: all.")] = "",
    records: Annotated[Path, typer.Option(help="Folder of recorded transcripts.")] = RECORDS,
) -> None:
    """Run the gates against a running server."""
    names = [name.strip() for name in only.split(",") if name.strip()] or list(GATES)
    unknown = [name for name in names if name not in GATES]
    if unknown:
        sys.exit(f"no such gate: {', '.join(unknown)}; there are {', '.join(GATES)}")
    base_url = base_url.rstrip("/")
    try:
        rows = asyncio.run(run_gates(base_url, api_key, names, records))
    except openai.APIConnectionError:
        sys.exit(f"no server answers at {base_url}: start one with `make run`, or give BASE_URL=http://HOST:PORT")
    except openai.APIStatusError as error:
        sys.exit(f"{base_url} answered {error.status_code}: {error.message}")
    except NotDescribedError as error:
        sys.exit(f"{base_url}{error}")
    print(format_counts(rows))
    sys.exit(any(row.outcome.verdict is Verdict.FAILED for row in rows))


async def run_gates(base_url: str, api_key: str, names: list[str], records: Path) -> list[Row]:
    """Run one gate after the other and print each line as it comes. Raises what describing the server raises."""
    rows = []
    async with open_server(base_url, api_key, records) as server:
        print(f"gates of {server.info.model}, {server.info.fingerprint}, at {base_url}\n{HEADER}", flush=True)
        for name in names:
            started = time.monotonic()
            outcome = await _attempt(name, server)
            rows.append(Row(name, time.monotonic() - started, outcome))
            print(format_row(rows[-1]), flush=True)
    return rows


async def _attempt(name: str, server: Server) -> Outcome:
    try:
        return await GATES[name](server)
    except openai.APIStatusError as error:
        return failed(f"a request was answered with {error.status_code}: {error.message}")
    except openai.APIError as error:
        return failed(f"a request ended with an error: {error.message}")
    except TimeoutError:
        return failed("the engine's statistics in /metrics are not renewed")


if __name__ == "__main__":
    typer.run(main)
