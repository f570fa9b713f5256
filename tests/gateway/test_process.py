"""The gateway as a process: torch, a taken port, SIGTERM, settings."""

import asyncio
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

from fakes.engine import FakeEngine, serve_engine
from twinspark_gateway.schemas.sampling_defaults import GenerationConfigError, load_sampling_defaults
from twinspark_gateway.settings import Settings
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
    return subprocess.run(command, env=environment(**settings), capture_output=True, text=True, timeout=60)


def test_torch_is_not_imported(model_folder: Path) -> None:
    code = (
        "import sys; from twinspark_gateway import __main__, app; from twinspark_gateway.settings import Settings;"
        "app.build_app(Settings()); print('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(model=model_folder), capture_output=True, text=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "False", done.stderr


async def wait_healthy(client: httpx2.AsyncClient, process: subprocess.Popen[bytes], seconds: float = 30) -> None:
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
def started(model_folder: Path, engine_address: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A gateway process and its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    settings = environment(model=model_folder, engine=engine_address, port=port, engine_poll_seconds=0.05)
    process = subprocess.Popen([sys.executable, "-m", "twinspark_gateway"], env=settings, stdout=subprocess.PIPE)
    yield process, port
    process.kill()
    process.wait()


async def test_it_serves_and_ends_running_requests_on_sigterm(started: tuple[subprocess.Popen[bytes], int]) -> None:
    process, port = started
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as client:
        await wait_healthy(client, process)
        body = {"prompt": "hello", "max_tokens": 10, "ignore_eos": True, "stream": True}
        async with client.stream("POST", "/v1/completions", json=body) as response:
            lines = response.aiter_lines()
            assert (await anext(lines)).startswith("data: ")
            process.send_signal(signal.SIGTERM)
            rest = [line async for line in lines]
    assert rest[-2] == "data: [DONE]"
    assert process.wait(10) == 0


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
    for text, words in (("[]", "object"), ("{", "not JSON"), ('{"top_p": 7}', "top_p"), ('{"top_k": "x"}', "top_k")):
        (tmp_path / "generation_config.json").write_text(text)
        with pytest.raises(GenerationConfigError, match=words):
            load_sampling_defaults(tmp_path)
