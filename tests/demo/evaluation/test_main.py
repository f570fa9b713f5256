"""The program's table, JSON and exit status follow what a server answers."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from fakes.engine import RankLostError
from support.free_ports import pick_free_ports
from twinspark_demo.evaluation.__main__ import main
from twinspark_demo.evaluation.drawing import draw_prompts, kinds

COUNT = 4
APP = typer.Typer()
APP.command()(main)


async def evaluate(url: str, *arguments: object) -> Result:
    """Run the program in a thread, as the server runs in this loop."""
    argv = ["--base-url", url, "--count", str(COUNT), *map(str, arguments)]
    return await asyncio.to_thread(lambda: CliRunner().invoke(APP, argv))


def rows(result: Result) -> dict[str, list[str]]:
    """Cells of the table by kind."""
    lines = [line.split() for line in result.stdout.splitlines()]
    return {cells[0]: cells[1:] for cells in lines if cells and cells[0] in kinds()}


async def test_a_perfect_server_scores_100_everywhere(start_server: Any, tmp_path: Path) -> None:
    result = await evaluate(await start_server(), "--json", tmp_path / "x" / "report.json")
    assert result.exit_code == 0, result.output
    assert list(rows(result)) == list(kinds())
    for kind, cells in rows(result).items():
        prompts, greedy, sampled, held_out, _, _ = cells
        assert (prompts, greedy, sampled) == (str(COUNT), "100.0", "-" if kind == "needle_8000" else "100.0")
        assert held_out in ("100.0", "-")
    assert sum(cells[3] == "100.0" for cells in rows(result).values()) > len(kinds()) / 2
    report = json.loads((tmp_path / "x" / "report.json").read_text())
    assert report["good_enough"] is True and report["failures"] == []
    assert [kind["kind"] for kind in report["kinds"]] == list(kinds())
    assert {"commit", "time", "machine", "versions", "settings", "served"} <= set(report)
    longest = {kind["kind"]: kind["mean_prompt_tokens"] for kind in report["kinds"]}
    # 33 statements of a byte-level vocabulary are about 1,500 tokens beside the filler.
    assert 7_500 < longest["needle_8000"] - longest["needle_100"] < 8_300


async def test_constraints_reach_the_engine_and_results_go_back_to_the_model(start_server: Any, known: Any) -> None:
    held = "tool_required,tool_named,tool_parallel,json_schema"
    assert (await evaluate(await start_server(), "--kinds", held)).exit_code == 0
    assert len(known.requests) == 4 * 2 * COUNT
    assert all(request.grammar.source for request in known.requests)
    known.requests.clear()
    known.texts.clear()
    assert (await evaluate(await start_server(), "--kinds", "tool_loop")).exit_code == 0
    assert not any(request.HasField("grammar") for request in known.requests)
    assert sum("<tool_response>" in text for text in known.texts) == len(known.texts) / 2 == 2 * COUNT


async def test_a_loop_whose_call_is_another_is_wrong(start_server: Any) -> None:
    server = await start_server(lambda _, right: right.replace("<tool_call>", "<tool_call>x", 1))
    result = await evaluate(server, "--kinds", "tool_loop")
    assert result.exit_code == 1
    assert rows(result)["tool_loop"][1:3] == ["0.0", "0.0"]
    assert "the calls before the last reply are others" in result.stderr


async def test_greedy_is_temperature_0_and_sampled_sends_only_a_seed(start_server: Any, known: Any) -> None:
    assert (await evaluate(await start_server(), "--kinds", "copy")).exit_code == 0
    greedy = [request for request in known.requests if request.sampling.temperature == 0]
    sampled = [request for request in known.requests if request.sampling.temperature != 0]
    assert len(greedy) == len(sampled) == COUNT
    # What a folder without generation_config.json says.
    assert {(request.sampling.temperature, request.sampling.top_p) for request in sampled} == {(1.0, 1.0)}
    assert len({request.sampling.seed for request in sampled}) == COUNT


async def test_reasoning_of_past_turns_is_passed_back_in_every_other_conversation(
    start_server: Any, known: Any
) -> None:
    assert (await evaluate(await start_server(), "--kinds", "follow_up")).exit_code == 0
    last = [text for text in known.texts if text.count("<|user|>") == 4]
    assert len(last) == 2 * COUNT
    kept = [text for text in last if text.count("<|assistant|><think>I think</think>ok") == 3]
    dropped = [text for text in last if text.count("<|assistant|><think></think>ok") == 3]
    assert len(kept) == len(dropped) == COUNT
    sends = {prompt.messages[0]["content"]: prompt.sends_reasoning for prompt in draw_prompts("follow_up", COUNT)}
    assert all(sends[text.split("<|user|>")[1].split("<|assistant|>")[0]] for text in kept)


async def test_another_seed_asks_other_prompts_and_is_in_the_report(
    start_server: Any, known: Any, tmp_path: Path
) -> None:
    url = await start_server()
    await evaluate(url, "--kinds", "facts", "--seed", 5, "--json", tmp_path / "r.json")
    assert json.loads((tmp_path / "r.json").read_text())["settings"]["seed"] == 5
    asked = [prompt.messages[0]["content"] for prompt in draw_prompts("facts", COUNT, 5)]
    assert all(any(text in said for said in known.texts) for text in asked)


async def test_one_wrong_reply_of_four_fails_its_kind_alone(start_server: Any, tmp_path: Path) -> None:
    wrong: list[str] = []

    def plant(prompt: str, right: str) -> str:
        if "JSON" not in prompt and "json" not in prompt:
            return right
        if not wrong:
            wrong.append(prompt)
        return right.replace(",", ";", 1) if prompt == wrong[0] else right

    result = await evaluate(await start_server(plant), "--kinds", "copy,json", "--json", tmp_path / "r.json")
    assert result.exit_code == 1
    assert rows(result)["copy"][1:3] == ["100.0", "100.0"]
    assert rows(result)["json"][1:3] == ["75.0", "75.0"]
    failures = json.loads((tmp_path / "r.json").read_text())["failures"]
    assert {(failure["kind"], failure["mode"]) for failure in failures} == {("json", "greedy"), ("json", "sampled")}
    assert failures[0]["messages"][0]["content"] in wrong[0]
    assert ";" in failures[0]["reply"]
    assert "json, greedy: said" in result.stderr


async def test_a_reply_that_runs_to_its_limit_is_wrong(start_server: Any) -> None:
    server = await start_server(lambda _, right: f"{right} " + "and so on " * 1_000)
    result = await evaluate(server, "--kinds", "arithmetic")
    assert result.exit_code == 1
    assert rows(result)["arithmetic"][1:3] == ["0.0", "0.0"]
    assert "finish_reason is length" in result.stderr


async def test_a_refused_request_counts_as_wrong_and_is_shown(start_server: Any, tmp_path: Path) -> None:
    url = await start_server(failure=RankLostError("rank 1 is lost"))
    report = tmp_path / "r.json"
    result = await evaluate(url, "--kinds", "facts,tool_none", "--json", report)
    assert result.exit_code == 1
    assert rows(result)["facts"][1:3] == rows(result)["tool_none"][1:3] == ["0.0", "0.0"]
    assert "answered 503" in result.stderr
    content = json.loads(report.read_text())
    assert [kind["failed_requests"] for kind in content["kinds"]] == [2 * COUNT, 2 * COUNT]
    assert len(content["failures"]) == 4 * COUNT


async def test_a_server_whose_engine_is_not_there_is_not_asked(start_server: Any, tmp_path: Path) -> None:
    url = await start_server(engine_address=f"127.0.0.1:{pick_free_ports(1)[0]}")
    result = await evaluate(url, "--kinds", "facts", "--json", tmp_path / "r.json")
    assert result.exit_code == 1
    assert f"{url} is not ready" in result.output
    assert not (tmp_path / "r.json").exists()


async def test_tools_are_offered_through_chat_and_a_call_of_another_form_is_wrong(
    start_server: Any, known: Any, tmp_path: Path
) -> None:
    def plant(_: str, right: str) -> str:
        return right.replace("</arg_value>", "", 1)

    kinds_ = ",".join(kind for kind in kinds() if kind.startswith("tool_"))
    result = await evaluate(await start_server(plant), "--kinds", kinds_, "--json", tmp_path / "r.json")
    assert result.exit_code == 1
    shares = {kind: cells[1:3] for kind, cells in rows(result).items()}
    assert shares["tool_one"] == shares["tool_two"] == ["0.0", "0.0"]
    # Their right replies call nothing.
    assert shares["tool_result"] == shares["tool_none"] == ["100.0", "100.0"]
    assert all("# Tools" in text for text in known.texts)
    failures = json.loads((tmp_path / "r.json").read_text())["failures"]
    assert all("<tool_call>" in failure["reply"] or "<arg_key>" in failure["reply"] for failure in failures)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--kinds", "poetry"], "unknown kind poetry"),
        (["--kinds", "tool"], "or needle for all of its sizes"),
        (["--kinds", "copy"], "no server answers"),
    ],
)
async def test_what_cannot_be_scored_is_said(arguments: list[str], said: str) -> None:
    result = await evaluate("http://127.0.0.1:9", *arguments)
    assert result.exit_code == 1
    assert said in result.output


async def test_an_address_may_end_in_v1_or_a_slash(start_server: Any, tmp_path: Path) -> None:
    url = await start_server()
    result = await evaluate(f"{url}/v1/", "--kinds", "copy", "--json", tmp_path / "r.json")
    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "r.json").read_text())["settings"]["base_url"] == url


@pytest.mark.parametrize("address", ["http://127.0.0.1:abc", "localhost:8300", "127.0.0.1:8300", "http://[::1", ""])
async def test_an_address_that_is_none_is_refused(address: str) -> None:
    result = await evaluate(address, "--kinds", "copy")
    assert result.exit_code == 1
    assert result.output == f"--base-url {address}: http://HOST:PORT is needed, for example http://127.0.0.1:8000\n"


@pytest.mark.parametrize(("name", "said"), [("", "is a folder"), ("file/report.json", "cannot be written")])
async def test_a_report_that_could_not_be_written_is_refused_before_anything_is_asked(
    name: str, said: str, start_server: Any, known: Any, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("kept")
    result = await evaluate(await start_server(), "--kinds", "copy", "--json", tmp_path / name)
    assert result.exit_code == 1
    # The server of the test logs to the same place.
    assert any(line.startswith(f"--json {tmp_path / name} {said}") for line in result.output.splitlines())
    assert known.requests == []
    assert (tmp_path / "file").read_text() == "kept"
