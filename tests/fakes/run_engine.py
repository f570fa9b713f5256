"""Serves a fake engine in a process of its own, so that a test can stop or kill it: arguments port, step seconds."""

import asyncio
import sys

from fakes.engine import FakeEngine, serve_engine


async def serve(port: int, step_seconds: float) -> None:
    """Serve until the process ends."""
    async with serve_engine(FakeEngine(step_seconds=step_seconds), port):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), float(sys.argv[2])))
