"""Measures a running server and prints the report: JSON on stdout, then a table on stderr."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import openai

Report = Mapping[str, Any]


def print_report(
    measure: Callable[[str], Awaitable[Report]], base_url: str, format_report: Callable[[Report], str]
) -> None:
    """Run `measure` with the address, without its last slash; a server that does not answer ends the process."""

    async def run() -> Report:
        return await measure(base_url.rstrip("/"))

    try:
        report = asyncio.run(run())
    except openai.APIConnectionError:
        sys.exit(f"no server answers at {base_url}: start one with `make run`, or give BASE_URL=")
    except openai.APIStatusError as error:
        sys.exit(f"{base_url} answered {error.status_code}: {error.message}")
    print(json.dumps(report, indent=2))
    sys.stdout.flush()
    print(f"\n{format_report(report)}", file=sys.stderr)
