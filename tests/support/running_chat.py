"""Chats that run through HTTP in threads of a test, and how each of them ended."""

import http.client
import json
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

from support.waiting import PATIENCE_SECONDS

ENDLESS: Mapping[str, Any] = {"ignore_eos": True}
JSON_HEADERS = {"Content-Type": "application/json"}


def post(port: int, path: str, body: dict[str, Any], timeout: float = PATIENCE_SECONDS) -> tuple[int, dict[str, Any]]:
    """Status and JSON object of a reply."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request("POST", path, json.dumps(body), JSON_HEADERS)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def get(port: int, path: str, timeout: float = PATIENCE_SECONDS) -> tuple[int, dict[str, Any]]:
    """Status and JSON object of a reply."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


class RunningChat:
    """One chat, streamed or whole and endless unless `fields` of its body say otherwise.

    `wait` returns when the server has ended it.
    """

    def __init__(self, port: int, text: str, *, stream: bool, fields: Mapping[str, Any] = ENDLESS) -> None:
        self.status = 0
        self.events: list[str] = []
        """Data of each server-sent event, or the whole reply as the only one."""
        self.ended_at = 0.0
        self.failure = ""
        """What went wrong below HTTP; empty if nothing did."""
        self._port = port
        self._body = {
            "messages": [{"role": "user", "content": text}],
            "max_tokens": 20_000,
            "stream": stream,
            **fields,
        }
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def num_tokens(self) -> int:
        """Events so far that carry text."""
        return sum('"delta"' in event for event in list(self.events))

    def token_ids(self) -> list[int]:
        """Output ids, where the body asks for them."""
        told = [json.loads(event) for event in self.events if event != "[DONE]"]
        return [
            token for event in told for choice in event.get("choices", ()) for token in choice.get("token_ids") or []
        ]

    def wait(self, seconds: float) -> None:
        """Until it has ended. AssertionError after that many seconds."""
        self._thread.join(seconds)
        assert not self._thread.is_alive(), f"still running after {seconds:.1f} s, {len(self.events)} events"

    def error(self) -> dict[str, Any]:
        """The error object with which it ended; AssertionError if it ended in another way."""
        assert not self.failure, self.failure
        if self.status == 200:
            assert self.events[-1] == "[DONE]", self.events[-2:]
            ended = json.loads(self.events[-2])
        else:
            ended = json.loads(self.events[-1])
        assert set(ended) == {"error"}, ended
        error: dict[str, Any] = ended["error"]
        return error

    def _run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=120)
        try:
            connection.request("POST", "/v1/chat/completions", json.dumps(self._body), JSON_HEADERS)
            response = connection.getresponse()
            self.status = response.status
            for event in _events(response):
                self.events.append(event)
        except (http.client.HTTPException, OSError) as error:
            self.failure = repr(error)
        finally:
            self.ended_at = time.monotonic()
            connection.close()


def _events(response: http.client.HTTPResponse) -> Iterator[str]:
    if response.headers.get_content_type() != "text/event-stream":
        yield response.read().decode()
        return
    for line in response:
        if line.startswith(b"data: "):
            yield line.removeprefix(b"data: ").decode().strip()
