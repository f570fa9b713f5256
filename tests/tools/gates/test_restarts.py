"""Servers that cut prompts into other chunks give the same replies, through HTTP."""

from pathlib import Path

import pytest

from support.gated_server import gated_server
from twinspark_tools.gates.prompts import draw_prompt
from twinspark_tools.gates.replies import Comparison, Reply
from twinspark_tools.gates.server import Ask, open_server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

CHUNKS = (64, 192, 2048)
LENGTHS = (2112, 150, 330)
"""The first is longer than each chunk."""


async def test_chunks_of_64_192_and_2048_tokens_give_equal_replies(tmp_path: Path, short_folder: Path) -> None:
    compared = Comparison()
    alone: list[Reply] = []
    for chunk in CHUNKS:
        folder = tmp_path / str(chunk)
        folder.mkdir()
        sizes = {name: str(chunk) for name in ("CHUNK_TOKENS_ALONE", "CHUNK_TOKENS_BESIDE_DECODERS")}
        with gated_server(folder, short_folder, SHORT_PROMPT_TOKENS="0", **sizes) as served:
            async with open_server(served.url, "none", tmp_path) as server:
                info = server.info
                assert info.chunk_tokens_alone == info.chunk_tokens_beside_decoders == chunk
                prompts = [draw_prompt(info, f"restart {length}", length) for length in LENGTHS]
                ask = Ask(prompts[0], 6, {"temperature": 1, "seed": 5}, echo=True)
                alone = alone or [(await server.complete_group(ask, [prompt]))[0] for prompt in prompts]
                together = await server.complete_group(ask, prompts)
        for length, one, other in zip(LENGTHS, alone, together, strict=True):
            compared.add(f"chunks of {chunk}, a prompt of {length}", one, other)
    assert compared.outcome("replies").detail == f"{len(LENGTHS) * len(CHUNKS)} replies"
