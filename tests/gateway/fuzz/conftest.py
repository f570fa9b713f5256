"""A gateway over the fake engine in a thread, for clients that block, and the number of cases."""

import logging
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from fakes.constrained_engine import ConstrainedEngine
from fakes.engine_model import FakeModel
from support.constrained import CLOSING
from support.served_gateway import serve_in_thread
from twinspark.engine.v1 import engine_pb2 as pb
from twinspark_gateway.settings import Settings

MOST_TOKENS = 8


class BriefEngine(ConstrainedEngine):
    """Ends every reply after 8 tokens, whatever was asked for."""

    async def Generate(self, request: pb.GenerateRequest, context: Any) -> AsyncIterator[pb.GenerateResponse]:
        """Run one request."""
        request.limits.max_tokens = min(MOST_TOKENS, request.limits.max_tokens)
        request.limits.min_tokens = min(MOST_TOKENS, request.limits.min_tokens)
        async for response in super().Generate(request, context):
            yield response


@pytest.fixture(scope="module")
def url(model_folder: Path, grammar_address: str) -> Iterator[str]:
    """The URL of a gateway, which logs errors only: thousands of requests are no news."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    # The engine shares its loop and its process with all the rest, and is slow where log probabilities are asked for:
    # it must not count as lost.
    settings = Settings(
        model=model_folder, grammar=grammar_address, engine_poll_seconds=0.05, engine_timeout_seconds=600
    )
    with serve_in_thread(settings, BriefEngine(FakeModel(), grammar=grammar_address, closing=CLOSING)) as found:
        yield found
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def num_cases() -> int:
    """Cases of each fuzzer: 500, or what `make fuzz CASES=5000` asks for."""
    return int(os.environ.get("FUZZ_CASES", "500"))
