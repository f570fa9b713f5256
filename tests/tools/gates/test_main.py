"""The program of `make gates` where there is nothing to test, and the lines of its table."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from support.free_ports import pick_free_ports
from twinspark_tools.gates.outcome import failed, passed, skipped
from twinspark_tools.gates.table import Row, format_counts, format_row


def gates(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "twinspark_tools.gates", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{pick_free_ports(1)[0]}"
    ended = gates(tmp_path, "--base-url", f"{url}/")
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert ended.stderr == f"no server answers at {url}: start one with `make run`, or give BASE_URL=http://HOST:PORT\n"


class BrokenHandler(BaseHTTPRequestHandler):
    """Describes itself, and breaks off in the middle of every other reply."""

    def do_GET(self) -> None:
        sizes = ("slots", "block_tokens", "pool_tokens", "chunk_tokens_alone", "chunk_tokens_beside_decoders")
        engine = dict.fromkeys((*sizes, "short_prompt_tokens", "max_top_logprobs"), 4) | {"vocabulary_size": 2000}
        model = {"id": "m", "object": "model", "created": 0, "owned_by": "x", "engine": engine}
        models = {"object": "list", "data": [model | {"context_length": 4096, "system_fingerprint": "f"}]}
        self._answer(json.dumps(models).encode(), 0)

    def do_POST(self) -> None:
        self._answer(b'{"choices": [', 100)

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def _answer(self, content: bytes, num_missing: int) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content) + num_missing))
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture
def broken_url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), BrokenHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_connection_that_breaks_is_a_failure_and_the_other_gates_go_on(tmp_path: Path, broken_url: str) -> None:
    ended = gates(tmp_path, "--base-url", broken_url, "--only", "batchexact,transcripts,exact")
    _, _, *rows, count = ended.stdout.splitlines()
    assert [row.split()[:2] for row in rows] == [
        ["batchexact", "failed"],
        ["transcripts", "failed"],
        ["exact", "skipped"],
    ]
    assert all(row.endswith("a request ended with an error: Connection error.") for row in rows[:2])
    assert count == "0 passed, 2 failed, 1 skipped"
    assert ended.returncode == 1


def test_a_gate_that_is_not_there_is_named(tmp_path: Path) -> None:
    ended = gates(tmp_path, "--only", "cancel,nothing")
    assert ended.returncode == 1
    assert ended.stderr.startswith("no such gate: nothing; there are exact, batchexact, ")


def test_a_row_is_one_line_and_the_count_names_every_verdict() -> None:
    rows = [Row("a", 1.25, failed("two\nlines")), Row("b", 0, passed("x")), Row("c", 0, skipped("y"))]
    assert format_row(rows[0]) == "a           failed       1.2 s  two lines"
    assert format_counts(rows) == "1 passed, 1 failed, 1 skipped"
    assert format_counts(rows[:1]) == "0 passed, 1 failed, 0 skipped"
