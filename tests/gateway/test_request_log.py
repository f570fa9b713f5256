"""The request log: what a line says, what it never says, and how its files rotate."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from fakes.engine import FakeEngine
from support.waiting import eventually
from twinspark_gateway.prompt.prompt_history import PromptHistory
from twinspark_gateway.request_log import RequestLog, RequestLogError

CHAT = "/v1/chat/completions"
SECRET = "a secret text that is in no log " * 10
USER, ASSISTANT = 7, 8


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read the lines of the log."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def messages(*texts: str) -> list[dict[str, str]]:
    """Give a conversation."""
    return [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(texts)]


async def test_a_line_tells_what_a_request_cost_and_nothing_that_was_said(start_gateway: Any, tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    gateway = await start_gateway(FakeEngine(num_cached_tokens=3), request_log_file=path)
    body = {"max_tokens": 3, "ignore_eos": True}
    first = await gateway.post(CHAT, body | {"messages": messages(SECRET)})
    longer = messages(SECRET, "the answer", "and more")
    await gateway.events(CHAT, body | {"messages": longer})
    await gateway.post(CHAT, body | {"messages": messages("hello")})
    await gateway.post(CHAT, {"messages": messages("hello"), "temperature": SECRET})
    await gateway.client.get(f"/{SECRET}")
    await gateway.client.get("/health")
    await eventually(lambda: len(read_lines(path)) == 5, "five requests are logged")
    lines = read_lines(path)
    # A stream's line comes after its last byte.
    one, two = sorted((line for line in lines if line.get("system_tokens")), key=lambda line: line["prompt_tokens"])[1:]
    assert one["request_id"] == first.headers["x-request-id"]
    assert (one["status"], one["outcome"], one["finish"], one["stream"]) == (200, "ok", "length", False)
    assert (one["prompt_tokens"], one["cached_tokens"]) == (first.json()["usage"]["prompt_tokens"], 3)
    assert (one["output_tokens"], one["max_tokens"], one["concurrent"], one["tokens_per_round"]) == (3, 3, 1, 2.0)
    assert (one["kv_blocks_free"], one["kv_blocks_used"]) == (0, 0)
    assert two["conversation"] == one["conversation"]
    assert two["system_hash"] == one["system_hash"]
    assert two["head_hash"] != one["head_hash"]
    assert one["common_own_tokens"] == 0
    assert two["common_own_tokens"] == one["prompt_tokens"] // 64 * 64 > 0
    assert sorted(line["status"] for line in lines) == [200, 200, 200, 400, 404]
    assert "secret" not in path.read_text()


async def test_a_client_that_leaves_is_logged_as_cancelled(start_gateway: Any, tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    gateway = await start_gateway(FakeEngine(step_seconds=0.01), request_log_file=path)
    body = {"messages": messages("hello"), "max_tokens": 400, "ignore_eos": True, "stream": True}
    async with gateway.client.stream("POST", CHAT, json=body) as response:
        await anext(response.aiter_lines())
    await eventually(lambda: read_lines(path), "the request is logged")
    assert [line["outcome"] for line in read_lines(path)] == ["cancelled"]


def test_full_files_are_kept_up_to_their_number_and_are_private(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    request_log = RequestLog(path, max_bytes=1000, num_kept=3)
    for number in range(100):
        request_log.write({"number": number, "padding": "x" * 100})
    request_log.close()
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["requests.jsonl", *(f"requests.jsonl.{i}" for i in (1, 2, 3))]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert all(file.stat().st_size <= 1000 for file in files)
    numbers = [line["number"] for file in (*files[:0:-1], files[0]) for line in read_lines(file)]
    assert numbers == list(range(100 - len(numbers), 100))


def test_a_log_that_cannot_be_opened_says_so(tmp_path: Path) -> None:
    with pytest.raises(RequestLogError, match="No such file"):
        RequestLog(tmp_path / "none" / "x", max_bytes=1000, num_kept=1)


def test_common_prefixes_are_told_by_conversation_in_whole_blocks() -> None:
    history = PromptHistory(USER, frozenset({USER, ASSISTANT}))
    system, question = [1] * 200, [USER, *[2] * 100]
    first = history.note([*system, *question, ASSISTANT])
    assert (first.num_system_tokens, first.num_common_own, first.num_common_other) == (200, 0, 0)
    longer = history.note([*system, *question, ASSISTANT, *[3] * 100, USER, 4, ASSISTANT])
    assert longer.conversation == first.conversation
    assert (longer.num_common_own, longer.num_common_other) == (256, 0)
    other = history.note([*system, USER, *[5] * 300, ASSISTANT])
    assert other.conversation != first.conversation
    assert other.system_hash == first.system_hash
    assert (other.num_common_own, other.num_common_other) == (0, 192)


def test_equal_blocks_after_a_different_one_are_not_common() -> None:
    history = PromptHistory(None, frozenset())
    history.note([*[1] * 64, *[2] * 64 * 8])
    assert history.note([*[3] * 64, *[2] * 64 * 8]).num_common_other == 0


def test_prompts_without_turns_have_traits_too_and_old_ones_are_forgotten() -> None:
    history = PromptHistory(None, frozenset())
    assert history.note([5] * 64).num_system_tokens is None
    assert history.note([5] * 64).num_common_own == 64
    for number in range(64):
        history.note([100 + number] * 64)
    assert history.note([5] * 64).num_common_own == 0


def test_hashes_cannot_be_compared_between_processes() -> None:
    assert PromptHistory(None, frozenset()).note([1]).head_hash != PromptHistory(None, frozenset()).note([1]).head_hash
