"""The same conversation, asked through every API, sends the engine the same prompt."""

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fakes.engine import FakeEngine
from fakes.engine_model import FakeModel
from support.constrained import build_engine

Turn = dict[str, Any]
TEXT = st.text(max_size=12)
ARGUMENTS = st.dictionaries(st.sampled_from(["city", "days"]), st.one_of(TEXT, st.integers(0, 9)), max_size=2)
NAMES = st.sampled_from(["get_weather", "look"])
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


@st.composite
def conversations(draw: st.DrawFn) -> dict[str, Any]:
    """A conversation: system text, turns of user and assistant, the last of them one of the user's or of the tools."""
    turns: list[Turn] = [{"user": draw(TEXT)}]
    for i in range(draw(st.integers(0, 3))):
        calls = [
            {"id": f"call_{i}_{j}", "name": draw(NAMES), "arguments": draw(ARGUMENTS), "result": draw(TEXT)}
            for j in range(draw(st.integers(0, 2)))
        ]
        # An empty text is no block.
        text = draw(TEXT.filter(bool))
        turns.append({"reasoning": draw(st.none() | TEXT.filter(bool)), "text": text, "calls": calls})
        if not calls or draw(st.booleans()):
            turns.append({"user": draw(TEXT)})
    return {
        "system": draw(st.none() | TEXT.filter(bool)),
        "turns": turns,
        "tools": draw(st.booleans()),
        "effort": draw(st.none() | st.sampled_from(["low", "high"])),
    }


def for_chat(conversation: dict[str, Any]) -> Turn:
    messages: list[Turn] = []
    if conversation["system"] is not None:
        messages.append({"role": "system", "content": conversation["system"]})
    for turn in conversation["turns"]:
        if "user" in turn:
            messages.append({"role": "user", "content": turn["user"]})
            continue
        message: Turn = {"role": "assistant", "content": turn["text"]}
        if turn["reasoning"] is not None:
            message["reasoning_content"] = turn["reasoning"]
        if turn["calls"]:
            message["tool_calls"] = [
                {
                    "id": call["id"],
                    "type": "function",
                    "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])},
                }
                for call in turn["calls"]
            ]
        messages.append(message)
        messages += [{"role": "tool", "tool_call_id": call["id"], "content": call["result"]} for call in turn["calls"]]
    body: Turn = {"messages": messages, "max_tokens": 2, "reasoning_effort": conversation["effort"]}
    if conversation["tools"]:
        body["tools"] = [
            {"type": "function", "function": {"name": "look", "description": "Look.", "parameters": SCHEMA}}
        ]
    return body


def for_messages(conversation: dict[str, Any]) -> Turn:
    messages: list[Turn] = []
    for turn in conversation["turns"]:
        if "user" in turn:
            messages.append({"role": "user", "content": turn["user"]})
            continue
        blocks: list[Turn] = []
        if turn["reasoning"] is not None:
            blocks.append({"type": "thinking", "thinking": turn["reasoning"], "signature": ""})
        blocks.append({"type": "text", "text": turn["text"]})
        blocks += [
            {"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["arguments"]}
            for call in turn["calls"]
        ]
        messages.append({"role": "assistant", "content": blocks})
        results = [
            {"type": "tool_result", "tool_use_id": call["id"], "content": call["result"]} for call in turn["calls"]
        ]
        if results:
            messages.append({"role": "user", "content": results})
    body: Turn = {"messages": messages, "max_tokens": 2, "thinking": {"type": "adaptive"}}
    body["output_config"] = {"effort": conversation["effort"]}
    if conversation["system"] is not None:
        body["system"] = conversation["system"]
    if conversation["tools"]:
        body["tools"] = [{"name": "look", "description": "Look.", "input_schema": SCHEMA}]
    return body


def for_responses(conversation: dict[str, Any]) -> Turn:
    items: list[Turn] = []
    for turn in conversation["turns"]:
        if "user" in turn:
            items.append({"role": "user", "content": [{"type": "input_text", "text": turn["user"]}]})
            continue
        if turn["reasoning"] is not None:
            part = {"type": "reasoning_text", "text": turn["reasoning"]}
            items.append({"type": "reasoning", "id": "rs", "summary": [], "content": [part]})
        part = {"type": "output_text", "text": turn["text"], "annotations": []}
        items.append({"type": "message", "id": "msg", "role": "assistant", "status": "completed", "content": [part]})
        for call in turn["calls"]:
            arguments = json.dumps(call["arguments"])
            items.append({"type": "function_call", "call_id": call["id"], "name": call["name"], "arguments": arguments})
        items += [
            {"type": "function_call_output", "call_id": call["id"], "output": call["result"]} for call in turn["calls"]
        ]
    body: Turn = {"input": items, "max_output_tokens": 2, "reasoning": {"effort": conversation["effort"]}}
    if conversation["system"] is not None:
        body["instructions"] = conversation["system"]
    if conversation["tools"]:
        body["tools"] = [{"type": "function", "name": "look", "description": "Look.", "parameters": SCHEMA}]
    return body


FORMS = {"/v1/chat/completions": for_chat, "/v1/messages": for_messages, "/v1/responses": for_responses}


async def test_every_api_sends_the_same_prompt(start_gateway: Any) -> None:
    engine = FakeEngine(FakeModel(context_length=8192))
    gateway = await start_gateway(engine)
    found: list[dict[str, Any]] = []

    @settings(max_examples=60, suppress_health_check=list(HealthCheck))
    @given(conversations())
    def collect(conversation: dict[str, Any]) -> None:
        found.append(conversation)

    collect()
    assert any(turn.get("calls") for conversation in found for turn in conversation["turns"])
    for conversation in found:
        engine.requests.clear()
        for path, build in FORMS.items():
            response = await gateway.post(path, build(conversation))
            assert response.status_code == 200, (path, conversation, response.text)
        prompts = [list(request.prompt_token_ids) for request in engine.requests]
        assert prompts == [prompts[0]] * len(FORMS), conversation


CHOICES = [None, "auto", "required", "look"]


def hold_chat(strict: bool | None, choice: str | None, parallel: bool, schema: Any) -> Turn:
    function = {"name": "look", "parameters": SCHEMA} | ({} if strict is None else {"strict": strict})
    body: Turn = {"messages": [{"role": "user", "content": "a"}], "max_tokens": 60, "thinking": False}
    if schema is not None:
        form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
        return body | {"response_format": form}
    named = {"type": "function", "function": {"name": choice}}
    other = {"type": "function", "function": {"name": "other"}}
    tools = [{"type": "function", "function": function}, other]
    return body | {
        "tools": tools,
        "tool_choice": named if choice == "look" else choice,
        "parallel_tool_calls": parallel,
    }


def hold_messages(strict: bool | None, choice: str | None, parallel: bool, schema: Any) -> Turn:
    body: Turn = {"messages": [{"role": "user", "content": "a"}], "max_tokens": 60}
    if schema is not None:
        return body | {"output_config": {"format": {"type": "json_schema", "schema": schema}}}
    tool = {"name": "look", "input_schema": SCHEMA} | ({} if strict is None else {"strict": strict})
    kinds: dict[str | None, Turn] = {
        None: {"type": "auto"},
        "auto": {"type": "auto"},
        "required": {"type": "any"},
        "look": {"type": "tool", "name": "look"},
    }
    picked = kinds[choice] | {"disable_parallel_tool_use": not parallel}
    return body | {"tools": [tool, {"name": "other"}], "tool_choice": picked}


def hold_responses(strict: bool | None, choice: str | None, parallel: bool, schema: Any) -> Turn:
    body: Turn = {"input": "a", "max_output_tokens": 60, "reasoning": {"effort": "none"}}
    if schema is not None:
        return body | {"text": {"format": {"type": "json_schema", "name": "x", "schema": schema}}}
    tool = {"type": "function", "name": "look", "parameters": SCHEMA} | ({} if strict is None else {"strict": strict})
    named = {"type": "function", "name": choice}
    return body | {
        "tools": [tool, {"type": "function", "name": "other"}],
        "tool_choice": named if choice == "look" else choice,
        "parallel_tool_calls": parallel,
    }


HOLDS = {"/v1/chat/completions": hold_chat, "/v1/messages": hold_messages, "/v1/responses": hold_responses}


async def test_every_api_holds_a_reply_to_the_same_grammar(start_gateway: Any, grammar_address: str) -> None:
    engine = build_engine(grammar_address)
    gateway = await start_gateway(engine, grammar=grammar_address)
    rows: list[tuple[bool | None, str | None, bool, Any]] = [
        (strict, choice, parallel, None)
        for strict in (None, False, True)
        for choice in CHOICES
        for parallel in (False, True)
    ]
    num_held = 0
    for row in [*rows, (None, None, True, SCHEMA), (None, None, True, {"type": "array", "items": {}})]:
        engine.requests.clear()
        for path, build in HOLDS.items():
            response = await gateway.post(path, build(*row))
            assert response.status_code == 200, (path, row, response.text)
        asked = [(list(request.prompt_token_ids), request.grammar) for request in engine.requests]
        assert asked == [asked[0]] * len(HOLDS), row
        num_held += bool(asked[0][1].handle)
    assert num_held == len(rows) - 8 + 2
