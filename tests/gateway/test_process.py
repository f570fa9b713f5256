"""The gateway as a process: torch, a taken port, SIGTERM, settings."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from structlog.testing import capture_logs

from fakes.engine import FakeEngine, serve_engine
from support.waiting import PATIENCE_SECONDS
from twinspark_gateway.app import build_app
from twinspark_gateway.schemas.sampling_defaults import GenerationConfigError, load_sampling_defaults
from twinspark_gateway.settings import Settings
from twinspark_gateway.web.drain import Drain
from twinspark_gateway.web.server import build_server
from twinspark_rpc import SettingsError
from twinspark_rpc.settings import build_settings

PREFIX = "TWINSPARK_GATEWAY_"


def environment(**settings: Any) -> dict[str, str]:
    """Give this process's environment with settings of the gateway."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("TWINSPARK_")}
    return plain | {PREFIX + name.upper(): str(value) for name, value in settings.items()}


def run(*arguments: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    """Run the gateway to its end."""
    command = [sys.executable, "-m", "twinspark_gateway", *arguments]
    return subprocess.run(
        command, env=environment(**settings), capture_output=True, text=True, timeout=PATIENCE_SECONDS
    )


def test_torch_is_not_imported(model_folder: Path) -> None:
    code = (
        "import sys; from twinspark_gateway import __main__, app; from twinspark_gateway.settings import Settings;"
        "from twinspark_gateway.web.drain import Drain;"
        "app.build_app(Settings(), Drain(1)); print('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(model=model_folder),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert done.stdout.splitlines()[-1] == "False", done.stderr


def test_what_was_built_at_start_is_never_collected_again(model_folder: Path) -> None:
    code = (
        "import gc; from twinspark_gateway import __main__; from twinspark_gateway.web.server import Server;"
        "Server.run = lambda *_, **__: print(gc.get_freeze_count(), len(gc.get_objects())); __main__.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(model=model_folder, port=0),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    num_frozen, num_left = map(int, done.stdout.splitlines()[-1].split())
    assert num_frozen > 10_000, done.stderr
    assert num_left < 1_000


async def wait_healthy(
    client: httpx2.AsyncClient, process: subprocess.Popen[bytes], seconds: float = PATIENCE_SECONDS
) -> None:
    """Until /health answers 200; fails once the process ends or the time is over."""
    deadline = time.monotonic() + seconds
    status: object = None
    while status != 200:
        assert process.poll() is None, f"the gateway ended with {process.returncode}"
        assert time.monotonic() < deadline, f"/health is not 200 within {seconds} s: {status!r}"
        await asyncio.sleep(0.05)
        try:
            status = (await client.get("/health")).status_code
        except httpx2.TransportError as error:
            status = error


@pytest.fixture
async def engine_address() -> AsyncIterator[str]:
    async with serve_engine(FakeEngine(step_seconds=0.05)) as address:
        yield address


@pytest.fixture
def started(
    model_folder: Path, engine_address: str, request: pytest.FixtureRequest
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A gateway process and its port; the parameter is its drain in seconds."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    settings = environment(model=model_folder, engine=engine_address, port=port, engine_poll_seconds=0.05)
    settings[PREFIX + "DRAIN_SECONDS"] = str(getattr(request, "param", 30))
    process = subprocess.Popen(
        [sys.executable, "-m", "twinspark_gateway"], env=settings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    yield process, port
    process.kill()
    process.wait()


async def test_it_serves_and_ends_running_requests_on_sigterm(started: tuple[subprocess.Popen[bytes], int]) -> None:
    process, port = started
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_SECONDS) as client:
        await wait_healthy(client, process)
        body = {"prompt": "hello", "max_tokens": 10, "ignore_eos": True, "stream": True}
        async with client.stream("POST", "/v1/completions", json=body) as response:
            lines = response.aiter_lines()
            assert (await anext(lines)).startswith("data: ")
            process.send_signal(signal.SIGTERM)
            rest = [line async for line in lines]
    assert rest[-2] == "data: [DONE]"
    assert process.wait(PATIENCE_SECONDS) == 0


LONG = {"prompt": "hello", "max_tokens": 400, "ignore_eos": True}
STOPS = "The server stops: running requests end, new ones are refused."


async def wait_stopped(process: subprocess.Popen[bytes]) -> str:
    """Wait for a good end without a traceback; give the log."""
    assert process.stdout is not None
    log = (await asyncio.wait_for(asyncio.to_thread(process.stdout.read), PATIENCE_SECONDS)).decode()
    assert process.wait(PATIENCE_SECONDS) == 0
    assert "Traceback" not in log
    assert "Exception in ASGI" not in log
    assert "timeout graceful" not in log
    return log


@pytest.mark.parametrize("started", [1], indirect=True)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_what_the_drain_leaves_ends_with_an_error_in_its_own_form(
    started: tuple[subprocess.Popen[bytes], int], number: signal.Signals
) -> None:
    process, port = started
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_SECONDS) as client:
        await wait_healthy(client, process)
        whole = asyncio.create_task(client.post("/v1/completions", json=LONG))
        reader, half_sent = await asyncio.open_connection("127.0.0.1", port)
        half_sent.write(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
        async with client.stream("POST", "/v1/completions", json=LONG | {"stream": True}) as response:
            lines = response.aiter_lines()
            assert (await anext(lines)).startswith("data: ")
            process.send_signal(number)
            rest = [line async for line in lines if line]
        refused = await whole
    assert rest[-1] == "data: [DONE]"
    error = json.loads(rest[-2].removeprefix("data: "))["error"]
    assert (error["type"], error["message"]) == ("server_error", STOPS)
    assert (refused.status_code, refused.json()["error"]) == (503, error)
    assert json.loads((await reader.read()).partition(b"\r\n\r\n")[2])["error"] == error
    await wait_stopped(process)
    half_sent.close()


async def test_a_client_that_reads_nothing_does_not_hold_up_the_end(
    model_folder: Path, engine_address: str, caplog: pytest.LogCaptureFixture
) -> None:
    drain = Drain(1)
    app = build_app(Settings(model=model_folder, engine=engine_address), drain)
    server = build_server(app, drain, drain_seconds=1, idle_seconds=5, head_seconds=60)
    request = {"prompt": [[5] * 400] * 128, "max_tokens": 1, "echo": True, "logprobs": 5, "stream": True}
    body = json.dumps(request).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as deaf, capture_logs() as lines:
        # Accepted sockets inherit it: so little is sent ahead that the stream has to wait for the client.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        address = listener.getsockname()
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        await asyncio.to_thread(deaf.connect, address)
        await asyncio.to_thread(deaf.sendall, head + body)
        await asyncio.sleep(1)
        server.should_exit = True
        await asyncio.wait_for(serving, PATIENCE_SECONDS)
    assert [line["outcome"] for line in lines if line["event"] == "request"] == ["cancelled"]
    assert not caplog.records


async def test_a_second_ctrl_c_ends_the_drain(started: tuple[subprocess.Popen[bytes], int]) -> None:
    process, port = started
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_SECONDS) as client:
        await wait_healthy(client, process)
        whole = asyncio.create_task(client.post("/v1/completions", json=LONG))
        await asyncio.sleep(0.5)
        process.send_signal(signal.SIGINT)
        await asyncio.sleep(0.5)
        assert not whole.done()
        process.send_signal(signal.SIGINT)
        assert (await asyncio.wait_for(whole, PATIENCE_SECONDS)).status_code == 503
    await wait_stopped(process)


async def test_a_new_request_during_the_drain_is_a_503(model_folder: Path) -> None:
    drain = Drain(30)
    drain.has_begun = True
    transport = httpx2.ASGITransport(app=build_app(Settings(model=model_folder), drain))
    async with httpx2.AsyncClient(base_url="http://x", transport=transport) as client:
        for response in (await client.get("/health"), await client.post("/v1/completions", json=LONG)):
            assert (response.status_code, response.json()["error"]["message"]) == (503, STOPS)


def test_a_taken_port_is_one_error_that_names_it(model_folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        done = run(model=model_folder, port=port)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"twinspark_gateway: cannot listen on 127.0.0.1 port {port}: Address already in use"
    ]


def test_wrong_settings_are_refused_by_name(
    model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for settings, name in (
        ({}, "MODEL"),
        ({"model": tmp_path / "none"}, "not a folder"),
        ({"model": model_folder, "prot": 1}, "TWINSPARK_GATEWAY_PROT"),
        ({"model": model_folder, "reasoning_field": "thoughts"}, "REASONING_FIELD"),
        ({"model": model_folder, "keys_file": tmp_path / "none"}, "keys_file"),
    ):
        with monkeypatch.context() as patch:
            for variable, value in environment(**settings).items():
                patch.setenv(variable, value)
            with pytest.raises(SettingsError, match=name):
                build_settings(Settings, os.environ)


def test_lists_in_settings_are_separated_by_commas(model_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"model": model_folder, "model_aliases": "a, b", "cors_origins": "https://x"}
    for variable, value in environment(**settings).items():
        monkeypatch.setenv(variable, value)
    settings_read = build_settings(Settings, os.environ)
    assert settings_read.model_aliases == ("a", "b")
    assert settings_read.cors_origins == ("https://x",)
    assert settings_read.served_name == "tiny"


def test_generation_config_is_checked(tmp_path: Path) -> None:
    for text, words in (
        ("[]", "object"),
        ("{", "not JSON"),
        ('{"top_p": 7}', "top_p"),
        ('{"top_k": "x"}', "top_k"),
        ('{"repetition_penalty": 0}', "repetition_penalty"),
    ):
        (tmp_path / "generation_config.json").write_text(text)
        with pytest.raises(GenerationConfigError, match=words):
            load_sampling_defaults(tmp_path)
