"""Reasoning of replies that call tools comes back into the prompt, though the client dropped it."""

import json
from pathlib import Path
from typing import Any

import pytest

from fakes.engine import FakeEngine
from fakes.engine_model import FakeModel
from support.scripts import say
from support.tiny_tokenizer import build_tokenizer

CHAT = "/v1/chat/completions"
USER = {"role": "user", "content": "hello"}
BODY: dict[str, Any] = {"messages": [USER], "tools": [{"type": "function", "function": {"name": "f"}}]}
REPLY = "why</think><tool_call>f</tool_call><|observation|>"


async def start(start_gateway: Any, **settings: Any) -> Any:
    return await start_gateway(FakeEngine(FakeModel(context_length=8192), script=say(REPLY)), **settings)


async def reply_to(gateway: Any, *, stream: bool, **request: Any) -> dict[str, Any]:
    """Give the message of a reply as a client keeps it: without reasoning."""
    if not stream:
        response = await gateway.client.post(CHAT, json=BODY, **request)
        calls = response.json()["choices"][0]["message"]["tool_calls"]
    else:
        response = await gateway.client.post(CHAT, json=BODY | {"stream": True}, **request)
        chunks = [json.loads(line[6:]) for line in response.text.split("\n\n") if line.startswith("data: {")]
        calls = [call for chunk in chunks for call in chunk["choices"][0]["delta"].get("tool_calls", [])]
    return {"role": "assistant", "content": None, "tool_calls": calls}


async def next_prompt(gateway: Any, message: dict[str, Any], **request: Any) -> tuple[str, dict[str, Any]]:
    """Give the prompt of the next turn, and its reply."""
    body = BODY | {"messages": [USER, message, {"role": "tool", "content": "ok"}], "max_tokens": 1}
    reply = (await gateway.client.post(CHAT, json=body, **request)).json()
    ids = list(gateway.engine.requests[-1].prompt_token_ids)
    assert (await gateway.client.post("/tokenize", json=body, **request)).json()["tokens"] == ids
    return str(build_tokenizer().decode(ids, skip_special_tokens=False)), reply


@pytest.mark.parametrize("stream", [False, True])
async def test_it_is_put_back_and_reported(start_gateway: Any, stream: bool) -> None:
    gateway = await start(start_gateway)
    message = await reply_to(gateway, stream=stream)
    text, reply = await next_prompt(gateway, message)
    assert "<think>why</think><tool_call>f</tool_call><|observation|>" in text
    assert reply["timings"] == {"restored_turns": 1}
    for call in message["tool_calls"]:
        call["id"] = "renumbered"
    assert "<think>why</think>" in (await next_prompt(gateway, message))[0]
    for own in ("mine", ""):
        for name in ("reasoning", "reasoning_content"):
            text, reply = await next_prompt(gateway, message | {name: own})
            assert f"<think>{own}</think><tool_call>" in text
            assert "timings" not in reply


async def test_it_can_be_switched_off(start_gateway: Any) -> None:
    gateway = await start(start_gateway, remembered_replies=0)
    text, reply = await next_prompt(gateway, await reply_to(gateway, stream=False))
    assert "<think></think><tool_call>f</tool_call>" in text
    assert "timings" not in reply


async def test_each_key_has_its_own(start_gateway: Any, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("ann: key-of-ann\nbob: key-of-bob\n")
    keys.chmod(0o600)
    gateway = await start(start_gateway, keys_file=keys)
    ann, bob = ({"headers": {"Authorization": f"Bearer key-of-{name}"}} for name in ("ann", "bob"))
    message = await reply_to(gateway, stream=False, **ann)
    assert "<think></think><tool_call>" in (await next_prompt(gateway, message, **bob))[0]
    assert "<think>why</think><tool_call>" in (await next_prompt(gateway, message, **ann))[0]
