"""The grammar service is killed in mid-request: what clients see, and that it serves again without a hand."""

import json
import os
import signal
from typing import Any

import psutil
import pytest

from support.launched import Launched
from support.running_chat import RunningChat, post
from support.waiting import PATIENCE_SECONDS, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

LONG: dict[str, Any] = {"structured_outputs": {"regex": "[a-z]{4000}"}}
"""A form that no reply reaches before the service is lost."""
SHORT: dict[str, Any] = {
    "messages": [{"role": "user", "content": "Which of two?"}],
    "structured_outputs": {"regex": "[a-z]{9,12}"},
    "chat_template_kwargs": {"enable_thinking": False},
    "temperature": 1,
    "seed": 5,
}
FREE: dict[str, Any] = {"ignore_eos": True, "max_tokens": 250, "temperature": 1, "return_token_ids": True}


def start_constrained(instance: Launched, *, stream: bool) -> RunningChat:
    fields = {**LONG, "chat_template_kwargs": {"enable_thinking": False}}
    return RunningChat(instance.port, "Tell a long word.", stream=stream, fields=fields)


def start_free(instance: Launched, seed: int) -> RunningChat:
    return RunningChat(instance.port, "Tell a story.", stream=True, fields={**FREE, "seed": seed})


def grammar_pid(instance: Launched) -> int:
    pid: int = instance.run["pids"]["grammar"]
    return pid


def undisturbed(instance: Launched, seed: int) -> list[int]:
    chat = start_free(instance, seed)
    chat.wait(PATIENCE_SECONDS)
    return chat.token_ids()


def test_a_killed_grammar_service_ends_its_requests_alone_and_comes_back(instance: Launched) -> None:
    expected = {seed: undisturbed(instance, seed) for seed in (1, 2)}
    assert [len(ids) for ids in expected.values()] == [250, 250]
    status, before = post(instance.port, "/v1/chat/completions", SHORT)
    assert status == 200, before

    constrained = [start_constrained(instance, stream=True), start_constrained(instance, stream=False)]
    free = {seed: start_free(instance, seed) for seed in expected}
    wait_until(
        lambda: min(chat.num_tokens for chat in (constrained[0], *free.values())) > 3,
        lambda: [chat.events for chat in (*constrained, *free.values())],
    )
    pid = grammar_pid(instance)
    host = psutil.Process(pid).children()[0]
    os.kill(pid, signal.SIGKILL)
    assert all(chat.ended_at == 0 for chat in free.values()), "too short to tell whether it was disturbed"

    for chat in constrained:
        chat.wait(PATIENCE_SECONDS)
        assert chat.error()["type"] == "server_error"
        assert "grammar" in chat.error()["message"]
    assert [chat.status for chat in constrained] == [200, 503]
    for seed, chat in free.items():
        chat.wait(PATIENCE_SECONDS)
        assert chat.token_ids() == expected[seed]
        assert chat.events[-1] == "[DONE]"

    def serves_again() -> bool:
        status, reply = post(instance.port, "/v1/chat/completions", SHORT)
        if status == 200:
            assert reply["choices"] == before["choices"]
            return True
        assert (status, reply["error"]["type"]) == (503, "server_error"), reply
        return False

    wait_until(serves_again, lambda: instance.output)
    assert grammar_pid(instance) != pid
    wait_until(lambda: not host.is_running(), "the compiler host ends with its service")
    assert errors_logged(instance) == []


def errors_logged(instance: Launched) -> list[str]:
    """Lines of the ranks' logs at level error: a lost grammar service is none."""
    lines = [line for log in instance.logs.glob("engine-*.log") for line in log.read_text().splitlines()]
    return [line for line in lines if line.startswith("{") and json.loads(line)["level"] == "error"]
