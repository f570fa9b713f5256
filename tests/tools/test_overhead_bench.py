"""The benchmark of the gateway's overhead: it starts its processes, matches sends and reads, and reads the profile."""

import json
from pathlib import Path

import pytest

from twinspark_tools.bench.overhead import __main__ as overhead
from twinspark_tools.bench.overhead.profile import name_package
from twinspark_tools.bench.overhead.readers import Reader


@pytest.mark.slow
def test_the_report_has_every_token_and_names_the_next_bottleneck(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    overhead.main(model=None, streams=3, rate=20, seconds=1)
    output = capsys.readouterr()
    report = json.loads(output.out)
    for kind in ("paced", "unpaced"):
        assert report[kind]["tokens"] == 60
        assert 0 < report[kind]["added_ms_median"] <= report[kind]["added_ms_p99"] <= report[kind]["added_ms_max"]
    assert 0 < report["paced"]["tokens_per_second"] < 70
    packages = report["profile"]["packages"]
    assert {"twinspark_gateway", "grpc", "uvicorn"} <= packages.keys()
    assert abs(sum(packages.values()) - 1) < 0.01
    assert f"next bottleneck: {report['next_bottleneck']}" in output.err


def test_sends_and_reads_are_matched_by_stream_and_position() -> None:
    sent = {"a": [1.0, 2.0], "b": [1.5, 2.5]}
    read = {"b": [1.502, 2.504], "a": [1.001, 2.003]}
    result = overhead.summarize(sent, read, 2)
    assert (result["tokens"], result["added_ms_median"], result["added_ms_max"]) == (4, 2.5, 4)
    assert result["tokens_per_second"] == round(4 / (2.504 - 1.001), 1)
    with pytest.raises(SystemExit, match="a: 2 tokens were sent, 1 read, not 2"):
        overhead.summarize(sent, {"a": [1.0]}, 2)


def test_a_token_is_read_when_its_event_is_complete() -> None:
    event = b'8\r\ndata: {"choices":[{"delta":{"content":"x"}}]}\n\n\r\n'
    role = b'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n'
    reader = Reader(b"")
    for data in (role, event[:20], event[20:] + event, b"data: [DONE]\n\n"):
        reader.data_received(data)
    reader.arrived = [1.0, 2.0, 3.0, 4.0]
    assert reader.token_times() == [3.0, 3.0]
    cut = Reader(b"")
    cut.data_received(event)
    with pytest.raises(ValueError, match="did not end"):
        cut.token_times()


def test_files_belong_to_their_package() -> None:
    assert name_package("/x/python3.11/site-packages/uvicorn/main.py") == "uvicorn"
    assert name_package("/x/services/gateway/src/twinspark_gateway/app.py") == "twinspark_gateway"
    assert name_package("/usr/lib/python3.11/asyncio/tasks.py") == "asyncio"
    assert name_package("/usr/lib/python3.11/threading.py") == "threading"
    assert name_package("~") == "builtin"
