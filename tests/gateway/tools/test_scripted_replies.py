"""Scripted raw outputs give the message that the table says, however they are cut into tokens and steps."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from fakes.engine import FakeEngine
from fakes.engine_model import FakeModel
from support.scripted_engine import EOS, ScriptedEngine
from support.scripted_replies import ScriptedReply, as_text, load_rows, load_tools
from support.scripts import encode
from twinspark_gateway.generation import Generation
from twinspark_gateway.prompt.tokenizer import Tokenizer
from twinspark_gateway.reply.chat_reader import ChatReader
from twinspark_gateway.reply.choice import Choice, Delta, Ended
from twinspark_gateway.schemas.fields import Fields
from twinspark_gateway.schemas.tools import read_tool_offer

CHAT = "/v1/chat/completions"
USER = {"role": "user", "content": "hello"}
ROWS = load_rows()
FILLER = encode("x")


def name_of(row: ScriptedReply) -> str:
    return row.rule


def test_the_table_covers_every_section_and_its_rows_differ() -> None:
    assert len(ROWS) >= 150
    sections = Counter(row.rule.split()[0] for row in ROWS)
    assert {"7.1", "7.3", "9.1", "9.2", "9.3", "9.4", "9.5", "11.3", "12.1", "12.2", "12.4", "12.5", "12.7"} <= set(
        sections
    )
    assert {f"12.3.{i}" for i in (1, 2, 4, 5, 6, 8, 9, 10)} <= set(sections)
    assert len({(row.raw, row.end, str(row.request), row.thinking) for row in ROWS}) == len(ROWS)


@dataclass
class Message:
    """What one reading gave."""

    reasoning: str = ""
    content: str = ""
    calls: list[tuple[str, str]] = field(default_factory=list)


def reader_of(tokenizer: Tokenizer, row: ScriptedReply) -> ChatReader:
    request = {"tools": load_tools()} | row.request
    return ChatReader(
        tokenizer,
        encode("<think>" if row.thinking else "<think></think>"),
        request.get("stop") or [],
        skip_special_tokens=True,
        offer=read_tool_offer(Fields(request)),
        eos_token_ids=EOS,
    )


def ends_of(row: ScriptedReply) -> frozenset[int]:
    """Give the tokens that end a row's output."""
    return (frozenset() if row.request.get("ignore_eos") else EOS) | frozenset(
        encode(row.stop_id) if row.stop_id else ()
    )


def read(tokenizer: Tokenizer, row: ScriptedReply, ids: Sequence[int]) -> Message:
    """Read a row's output with the reader alone."""
    reader, ends, message = reader_of(tokenizer, row), ends_of(row), Message()
    for token_id in [*ids, *row.end_token_ids()]:
        safe = reader.end(token_id, None) if token_id in ends else reader.take(token_id, None)
        add(message, safe)
        if token_id in ends or reader.matched_stop is not None:
            return message
    add(message, reader.end(None, None))
    return message


def add(message: Message, safe: Any) -> None:
    message.reasoning += safe.reasoning
    message.content += safe.content
    assert [call.index for call in safe.calls] == list(range(len(message.calls), len(message.calls) + len(safe.calls)))
    message.calls += [(call.name, call.arguments) for call in safe.calls]


def check(row: ScriptedReply, message: Message) -> None:
    assert message.content == (row.content or ""), row.rule
    assert message.reasoning == row.reasoning or row.request.get("include_reasoning") is False, row.rule
    assert as_text(message.calls) == as_text(row.calls), row.rule


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_any_split_at_a_byte_gives_the_same_message(tokenizer: Tokenizer, row: ScriptedReply) -> None:
    whole = read(tokenizer, row, row.token_ids())
    check(row, whole)
    seen = {tuple(row.token_ids())}
    variants = [row.token_ids(every_byte=True)] + [row.token_ids(cut=cut) for cut in range(1, row.num_bytes)]
    for ids in variants:
        if tuple(ids) not in seen:
            seen.add(tuple(ids))
            assert read(tokenizer, row, ids) == whole, (row.rule, tokenizer.decode(ids))


async def run_in_steps(tokenizer: Tokenizer, row: ScriptedReply, steps: Sequence[Sequence[int]]) -> tuple[Message, Any]:
    """Run a choice over an engine that says these steps."""
    generation = Generation("r", encode("x"), 10_000, stop_token_ids=encode(row.stop_id) if row.stop_id else ())
    message, last = Message(), None
    async for part in Choice(0, generation, reader_of(tokenizer, row), ends_of(row)).run(ScriptedEngine(steps)):
        if isinstance(part, Delta):
            add(message, part)
        elif isinstance(part, Ended):
            last = (part.finish_reason, part.stop_reason, part.usage)
    return message, last


@pytest.mark.parametrize("row", ROWS, ids=name_of)
async def test_any_split_at_a_token_gives_the_same_message_end_and_usage(
    tokenizer: Tokenizer, row: ScriptedReply
) -> None:
    ids = [*row.token_ids(), *row.end_token_ids()]
    whole = await run_in_steps(tokenizer, row, [ids])
    check(row, whole[0])
    assert whole[1][0] == row.finish
    assert await run_in_steps(tokenizer, row, [[token] for token in ids]) == whole
    for cut in range(1, len(ids)):
        assert await run_in_steps(tokenizer, row, [ids[:cut], ids[cut:]]) == whole, (row.rule, cut)


async def collect(gateway: Any, body: dict[str, Any]) -> dict[str, Any]:
    """Add up a stream as clients do; check the order of its chunks."""
    events = await gateway.events(CHAT, body | {"stream_options": {"include_usage": True}})
    assert events.pop() == "[DONE]"
    chunks = [json.loads(event) for event in events]
    usage = chunks.pop()
    assert usage["choices"] == []
    total: dict[str, Any] = {"content": "", "reasoning": "", "calls": [], "usage": usage["usage"]}
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    for chunk in chunks[1:-1]:
        (choice,) = chunk["choices"]
        assert choice["finish_reason"] is None
        assert choice["delta"]
        total["content"] += choice["delta"].get("content", "")
        total["reasoning"] += choice["delta"].get("reasoning_content", "")
        for call in choice["delta"].get("tool_calls", []):
            assert call["index"] == len(total["calls"])
            assert call["type"] == "function"
            total["calls"].append((call["id"], call["function"]["name"], call["function"]["arguments"]))
    assert chunks[-1]["choices"][0]["delta"] == {}
    return total | {"finish": chunks[-1]["choices"][0]["finish_reason"]}


def summary(total: dict[str, Any]) -> dict[str, Any]:
    """Leave out what differs between two replies to one request: the ids of calls."""
    return total | {"calls": [call[1:] for call in total["calls"]]}


async def test_every_row_is_served_whole_and_streamed_alike(start_gateway: Any, grammar_address: str) -> None:
    """Also rows that ask for calls: this engine says its script, whatever masks would say."""
    ids: list[int] = []
    model = FakeModel(context_length=16_384)
    engine = FakeEngine(model, script=lambda _: [*ids, *FILLER * 8])
    gateway = await start_gateway(engine, grammar=grammar_address)
    seen_ids: set[str] = set()
    for row in ROWS:
        ids = [*row.token_ids(), *row.end_token_ids()]
        body = {"messages": [USER], "tools": load_tools()} | row.request
        body |= {} if row.thinking else {"reasoning_effort": "none"}
        body |= {"max_tokens": len(ids)} if row.end == "length" else {}
        body |= {"stop_token_ids": encode(row.stop_id)} if row.stop_id else {}
        engine.tokens_per_step = 1000
        response = await gateway.post(CHAT, body)
        assert response.status_code == 200, (row.rule, response.text)
        reply = response.json()
        (choice,) = reply["choices"]
        message = choice["message"]
        calls = message.get("tool_calls", [])
        assert ("tool_calls" in message) == bool(row.calls), row.rule
        assert message["content"] == (row.content if row.content or row.calls else ""), row.rule
        assert message.get("reasoning_content", "") == row.reasoning, row.rule
        assert as_text([(call["function"]["name"], call["function"]["arguments"]) for call in calls]) == as_text(
            row.calls
        )
        assert all(isinstance(json.loads(call["function"]["arguments"]), dict) for call in calls)
        assert choice["finish_reason"] == row.finish, row.rule
        whole = {
            "content": message["content"] or "",
            "reasoning": message.get("reasoning_content", ""),
            "calls": [(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in calls],
            "usage": reply["usage"],
            "finish": choice["finish_reason"],
        }
        for engine.tokens_per_step in (1, 7, 1000):
            streamed = await collect(gateway, body)
            assert summary(streamed) == summary(whole), row.rule
            for call_id, *_ in [*streamed["calls"], *(whole["calls"] if engine.tokens_per_step == 1 else [])]:
                assert call_id.startswith("call_") and len(call_id) == 29 and call_id not in seen_ids
                seen_ids.add(call_id)
