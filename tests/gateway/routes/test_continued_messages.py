"""continue_final_message through HTTP: the reply is the rest of the message, and /tokenize counts the same prompt."""

import json
from typing import Any

import pytest

from fakes.engine import FakeEngine
from support.scripts import encode, say
from support.tiny_tokenizer import build_tokenizer

CHAT = "/v1/chat/completions"
USER = {"role": "user", "content": "hello"}
ROWS: list[tuple[dict[str, Any], str, str, str]] = [
    # The message, what the model says, and the reasoning and content of the reply.
    ({"content": "Once upon"}, " a line", "", " a line"),
    ({"content": "Once upon\n"}, "\n\na line", "", "\n\na line"),
    ({"content": "", "reasoning_content": "so "}, "it is</think>\n\n42", "it is", "42"),
    ({"content": "<think>so"}, "</think>42", "", "42"),
    ({"content": "4", "reasoning_content": "so"}, "2", "", "2"),
]


@pytest.mark.parametrize(("last", "said", "reasoning", "content"), ROWS)
async def test_a_reply_is_the_rest_of_the_message(
    start_gateway: Any, last: dict[str, Any], said: str, reasoning: str, content: str
) -> None:
    gateway = await start_gateway(FakeEngine(script=say(said)))
    body = {"messages": [USER, {"role": "assistant", **last}], "continue_final_message": True}
    reply = (await gateway.post(CHAT, body)).json()
    message = reply["choices"][0]["message"]
    assert (message.get("reasoning_content", ""), message["content"]) == (reasoning, content)
    deltas = [json.loads(event)["choices"][0]["delta"] for event in (await gateway.events(CHAT, body))[:-1]]
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == reasoning
    assert "".join(delta.get("content", "") for delta in deltas) == content
    tokens = (await gateway.post("/tokenize", body)).json()["tokens"]
    assert [list(request.prompt_token_ids) for request in gateway.engine.requests] == [tokens] * 2
    assert reply["usage"]["prompt_tokens"] == len(tokens)


async def test_a_continued_reasoning_has_a_budget_of_its_own_and_may_call_tools(start_gateway: Any) -> None:
    gateway = await start_gateway(
        FakeEngine(
            script=lambda request: encode(
                "<tool_call>f</tool_call>" if request.num_prior_output_tokens else "and so on"
            )
        )
    )
    body = {
        "messages": [USER, {"role": "assistant", "content": "", "reasoning_content": "so"}],
        "continue_final_message": True,
        "thinking_budget": 3,
        "tools": [{"type": "function", "function": {"name": "f"}}],
    }
    choice = (await gateway.post(CHAT, body)).json()["choices"][0]
    assert choice["message"]["tool_calls"][0]["function"]["name"] == "f"
    assert choice["message"]["reasoning_content"] == build_tokenizer().decode(encode("and so on")[:2]) + "\n"
    # Only a part of the reasoning is in this reply, so none of it is put back later.
    again = {**body, "continue_final_message": False}
    again["messages"] = [USER, {"role": "assistant", "tool_calls": choice["message"]["tool_calls"]}]
    assert "timings" not in (await gateway.post(CHAT, again)).json()


async def test_messages_of_the_other_api_go_on_likewise(start_gateway: Any) -> None:
    gateway = await start_gateway(FakeEngine(script=say(" a line")))
    body = {"messages": [USER, {"role": "assistant", "content": "Once upon"}], "max_tokens": 20}
    reply = (await gateway.post("/v1/messages", body)).json()
    assert [block["text"] for block in reply["content"]] == [" a line"]
    counted = (await gateway.post("/v1/messages/count_tokens", body)).json()["input_tokens"]
    assert reply["usage"]["input_tokens"] == counted == len(gateway.engine.requests[-1].prompt_token_ids)
