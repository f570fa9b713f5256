"""Keys, browsers' origins, request ids and the request log."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import structlog
from pydantic import SecretStr

from support.waiting import eventually
from twinspark_gateway.routes import completions
from twinspark_gateway.settings import Settings
from twinspark_gateway.web.keys import Keyring, KeysError, build_keyring, load_keys

CHAT = "/v1/chat/completions"
HELLO: dict[str, Any] = {"messages": [{"role": "user", "content": "a secret text"}], "max_tokens": 2}


def write_keys(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def write_unnoticed(path: Path, text: str) -> None:
    """Write another text as if the file had not changed."""
    before = path.stat()
    path.write_text(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.fixture
def keys_file(tmp_path: Path) -> Path:
    return write_keys(tmp_path / "keys", "# people\nalice: sk-one\n\nbob: sk-two:with colon\n")


async def test_with_keys_every_route_but_health_needs_one(start_gateway: Any, keys_file: Path) -> None:
    gateway = await start_gateway(keys_file=keys_file)
    get, post = gateway.client.get, gateway.client.post
    assert (await get("/health")).json() == {"status": "ok"}
    for headers in ({}, {"Authorization": "Bearer nope"}, {"Authorization": "sk-one"}, {"x-api-key": ""}):
        for path in ("/v1/models", "/metrics", "/nope"):
            response = await get(path, headers=headers)
            assert response.status_code == 401, (path, headers)
            assert response.headers["www-authenticate"] == "Bearer"
            error = response.json()["error"]
            assert (error["type"], error["code"]) == ("authentication_error", "invalid_api_key")
        assert (await post(CHAT, json=HELLO, headers=headers)).status_code == 401
    for headers in ({"Authorization": "Bearer sk-one"}, {"authorization": "bearer sk-two:with colon"}):
        assert (await post(CHAT, json=HELLO, headers=headers)).status_code == 200
    assert (await get("/v1/models", headers={"x-api-key": "sk-one"})).status_code == 200
    text = (await get("/metrics", headers={"x-api-key": "sk-one"})).text
    assert 'twinspark_gateway_key_requests_total{key="alice"} 2.0' in text
    assert "sk-" not in text


async def test_metrics_can_be_open(start_gateway: Any, keys_file: Path) -> None:
    gateway = await start_gateway(keys_file=keys_file, open_metrics=True)
    assert (await gateway.client.get("/metrics")).status_code == 200


async def test_without_keys_any_key_is_accepted(gateway: Any) -> None:
    response = await gateway.client.get("/v1/models", headers={"Authorization": "Bearer EMPTY"})
    assert response.status_code == 200


def test_a_changed_file_is_read_again_and_a_broken_one_closes_every_route(keys_file: Path) -> None:
    now = 0.0
    keyring = Keyring(keys_file, clock=lambda: now)
    assert keyring.find_label({"x-api-key": "sk-one"}) == "alice"
    write_keys(keys_file, "carol: sk-three")
    os.utime(keys_file, ns=(1, 1))
    assert keyring.find_label({"x-api-key": "sk-one"}) == "alice"
    now = 1.0
    assert keyring.find_label({"x-api-key": "sk-one"}) is None
    assert keyring.find_label({"x-api-key": "sk-three"}) == "carol"
    keys_file.chmod(0o644)
    now = 2.0
    assert keyring.find_label({"x-api-key": "sk-three"}) is None
    keys_file.chmod(0o600)
    now = 3.0
    assert keyring.find_label({"x-api-key": "sk-three"}) == "carol"


async def test_keys_of_the_setting_stand_beside_those_of_the_file(start_gateway: Any, keys_file: Path) -> None:
    gateway = await start_gateway(keys_file=keys_file, keys="ci: sk-ci, ops: sk-ops")
    for key, status in (("sk-one", 200), ("sk-ci", 200), ("sk-ops", 200), ("ci: sk-ci", 401)):
        assert (await gateway.client.get("/v1/models", headers={"x-api-key": key})).status_code == status, key
    alone = await start_gateway(keys="ci: sk-ci")
    assert (await alone.client.get("/v1/models")).status_code == 401
    assert (await alone.client.get("/health")).json() == {"status": "ok"}


async def test_sighup_reads_the_keys_again(start_gateway: Any, keys_file: Path) -> None:
    gateway = await start_gateway(keys_file=keys_file, keys="ci: sk-ci")
    write_unnoticed(keys_file, "dave: sk-four")
    os.kill(os.getpid(), signal.SIGHUP)
    headers = {"x-api-key": "sk-four"}
    for _ in range(1000):
        if (await gateway.client.get("/v1/models", headers=headers)).status_code == 200:
            break
        await asyncio.sleep(0.005)
    else:
        raise AssertionError("the new key is not taken")
    for key, status in (("sk-one", 401), ("sk-ci", 200)):
        assert (await gateway.client.get("/v1/models", headers={"x-api-key": key})).status_code == status


def test_a_keys_setting_that_is_wrong_is_refused_without_showing_a_key(model_folder: Path) -> None:
    with pytest.raises(KeysError, match="line 2 of the setting keys") as caught:
        build_keyring(Settings(model=model_folder, keys=SecretStr("a: sk-one,sk-two")))
    assert "sk-" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "mode", "words"),
    [
        ("a: b", 0o640, "mode 0600"),
        ("", 0o600, "no key"),
        ("just-a-key", 0o600, "line 1"),
        ("a: b\nbad label: c", 0o600, "line 2"),
        ("a:", 0o600, "line 1"),
    ],
)
def test_a_keys_file_that_is_wrong_is_refused_without_showing_a_key(
    tmp_path: Path, text: str, mode: int, words: str
) -> None:
    with pytest.raises(KeysError, match=words) as caught:
        load_keys(write_keys(tmp_path / "keys", text, mode))
    assert "just-a-key" not in str(caught.value)


async def test_origins_are_off_until_they_are_set(start_gateway: Any, keys_file: Path) -> None:
    origin = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
    closed = await start_gateway()
    assert "access-control-allow-origin" not in (await closed.client.get("/health", headers=origin)).headers
    gateway = await start_gateway(cors_origins=("https://app.example",), keys_file=keys_file)
    preflight = await gateway.client.options(CHAT, headers=origin)
    assert preflight.status_code == 200
    assert preflight.headers["access-control-allow-origin"] == "https://app.example"
    refused = await gateway.client.post(CHAT, json=HELLO, headers=origin)
    assert refused.status_code == 401
    assert refused.headers["access-control-allow-origin"] == "https://app.example"


async def test_a_request_id_is_echoed_made_up_or_replaced(gateway: Any) -> None:
    get = gateway.client.get
    assert (await get("/health", headers={"X-Request-Id": "abc-1"})).headers["x-request-id"] == "abc-1"
    assert len((await get("/health")).headers["x-request-id"]) == 32
    assert (await get("/health", headers={"X-Request-Id": "a b"})).headers["x-request-id"] != "a b"


async def test_two_requests_may_carry_one_id(gateway: Any) -> None:
    headers = {"X-Request-Id": "same"}
    for _ in range(2):
        assert (await gateway.client.post(CHAT, json=HELLO, headers=headers)).status_code == 200
    assert len({request.request_id for request in gateway.engine.requests}) == 2


async def test_the_log_lines_of_all_services_carry_the_id_of_the_request(gateway: Any) -> None:
    with structlog.testing.capture_logs([structlog.contextvars.merge_contextvars]) as lines:
        for request_id, more in (("whole", {}), ("stream", {"stream": True}), ("two", {"n": 2})):
            await gateway.client.post(CHAT, json=HELLO | more, headers={"X-Request-Id": request_id})
        # The engine's server writes them when the call has ended there.
        await eventually(lambda: len(calls_of(lines)) == 4, lambda: lines)
    assert sorted(calls_of(lines)) == ["stream", "two", "two", "whole"]
    assert sorted(line["request_id"] for line in requests_of(lines)) == ["stream", "two", "whole"]


def calls_of(lines: list[Any]) -> list[str]:
    """Give the request ids of the engine's log lines about Generate."""
    ended = [line for line in lines if line["event"] == "rpc_finished" and line["method"].endswith("/Generate")]
    return [line["request_id"] for line in ended]


def requests_of(lines: list[Any]) -> list[Any]:
    """Give the lines of requests that are worth one."""
    return [line for line in lines if line["event"] == "request" and line["log_level"] == "info"]


async def test_each_request_leaves_one_log_line_without_text(start_gateway: Any) -> None:
    gateway = await start_gateway()
    with structlog.testing.capture_logs([structlog.contextvars.merge_contextvars]) as lines:
        await gateway.client.post(CHAT, json=HELLO, headers={"X-Request-Id": "one"})
        await gateway.post(CHAT, HELLO | {"stream": True})
        await gateway.post(CHAT, HELLO | {"stop": 5, "temperature": "a secret text"})
        await gateway.client.get("/a-secret-path")
        await gateway.client.get("/health")
        await eventually(lambda: len(requests_of(lines)) == 4, lambda: lines)
    requests = requests_of(lines)
    # A stream's line comes after its last byte.
    requests.sort(key=lambda line: (line["status"], line.get("stream", False)))
    assert [line["status"] for line in requests] == [200, 200, 400, 404]
    assert (
        dict(requests[0])
        | {
            "request_id": "one",
            "path": CHAT,
            "outcome": "ok",
            "output_tokens": 2,
            "finish": "length",
            "max_tokens": 2,
            "thinking": True,
            "stream": False,
        }
        == requests[0]
    )
    assert requests[1]["stream"]
    assert requests[2]["param"] == "temperature"
    assert "secret" not in repr(lines)


async def test_a_failure_has_the_request_id_and_a_browser_may_read_it(
    start_gateway: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: Any) -> None:
        raise ZeroDivisionError("a secret text")

    monkeypatch.setattr(completions, "read_completion_request", fail)
    gateway = await start_gateway(cors_origins=("https://app.example",))
    headers = {"Origin": "https://app.example", "X-Request-Id": "one"}
    with structlog.testing.capture_logs() as lines:
        response = await gateway.client.post("/v1/completions", json={"prompt": "a"}, headers=headers)
        await eventually(lambda: requests_of(lines), "its line is logged")
    assert (response.status_code, response.json()["error"]["type"]) == (500, "server_error")
    assert "secret" not in response.text
    assert response.headers["x-request-id"] == "one"
    assert response.headers["access-control-allow-origin"] == "https://app.example"
    assert [(line["status"], line["outcome"]) for line in requests_of(lines)] == [(500, "failed")]


async def test_a_browser_may_send_its_key_from_a_listed_origin(start_gateway: Any, keys_file: Path) -> None:
    gateway = await start_gateway(cors_origins=("https://app.example",), keys_file=keys_file)
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,x-stainless-os"}
    allowed = await gateway.client.options(CHAT, headers={"Origin": "https://app.example", **asked})
    assert allowed.status_code == 200
    assert allowed.headers["access-control-allow-headers"] == "authorization,x-stainless-os"
    assert allowed.headers["access-control-allow-credentials"] == "true"
    other = await gateway.client.options(CHAT, headers={"Origin": "https://evil.example", **asked})
    assert "access-control-allow-origin" not in other.headers
    anyone = await start_gateway(cors_origins=("*",))
    response = await anyone.client.get("/health", headers={"Origin": "https://evil.example"})
    assert response.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in response.headers
