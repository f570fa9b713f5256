"""The grammar service is killed in the middle of a reply: that reply ends with an error, others do not notice."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from support.constrained import build_engine, run_grammar_service
from support.free_ports import pick_free_ports
from support.waiting import PATIENCE_SECONDS, eventually

CHAT = "/v1/chat/completions"
FREE: dict[str, Any] = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 40, "thinking": False}
HELD = FREE | {"response_format": {"type": "json_object"}}
LOST = "the grammar service was lost"


@pytest.mark.slow
@pytest.mark.parametrize("path", [CHAT, "/v1/messages", "/v1/responses"])
async def test_a_reply_that_loses_its_masks_ends_with_an_error_and_the_service_serves_again(
    start_gateway: Any, model_folder: Path, path: str
) -> None:
    (port,) = pick_free_ports(1)
    engine = build_engine(f"127.0.0.1:{port}", want='{"a": "bcd"}', hold_after=4)
    engine.gate.clear()
    with run_grammar_service(model_folder, port):
        gateway = await start_gateway(engine, grammar=f"127.0.0.1:{port}")
        bodies = [held_body(path) | {"stream": stream} for stream in (False, True)]
        held = [asyncio.create_task(gateway.post(path, body)) for body in bodies]
        await eventually(lambda: engine.counts["output_tokens_total"] == 8, "both replies have begun")
    engine.gate.set()
    whole, streamed = await asyncio.gather(*held)
    assert whole.status_code == 503
    assert LOST in whole.text
    assert streamed.status_code == 200
    assert LOST in streamed.text
    if path == CHAT:
        events = [block.removeprefix("data: ") for block in streamed.text.split("\n\n") if block.startswith("data")]
        assert events[-1] == "[DONE]"
        assert json.loads(events[-2])["error"]["type"] == "server_error"
        assert not any(json.loads(event)["choices"][0]["finish_reason"] for event in events[:-2])
    assert (await gateway.post(CHAT, FREE)).status_code == 200
    assert (await gateway.client.get("/health")).status_code == 200
    assert (await gateway.post(path, held_body(path))).status_code == 503
    with run_grammar_service(model_folder, port):
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (await gateway.client.get("/health")).json()["grammar"]["state"] != "serving":
                await asyncio.sleep(0.05)
        response = await gateway.post(path, held_body(path))
        assert response.status_code == 200, response.text
        health = (await gateway.client.get("/health")).json()
        assert (health["grammar"], health["inflight"]) == ({"state": "serving"}, 0)
    assert not engine.running


def held_body(path: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    form = {"type": "json_schema", "schema": schema}
    if path == "/v1/messages":
        return {"messages": FREE["messages"], "max_tokens": 40, "output_config": {"format": form}}
    if path == "/v1/responses":
        return {"input": "hello", "reasoning": {"effort": "none"}, "text": {"format": form | {"name": "x"}}}
    return HELD
