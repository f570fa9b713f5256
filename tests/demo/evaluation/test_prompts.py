"""The file of prompts for checks without a server."""

import json
from pathlib import Path

import typer
from typer.testing import CliRunner

from twinspark_demo.evaluation.drawing import draw_prompts, kinds
from twinspark_demo.evaluation.prompts import main

APP = typer.Typer()
APP.command()(main)


def test_every_prompt_is_a_line_with_its_right_reply(tmp_path: Path) -> None:
    out = tmp_path / "prompts.jsonl"
    result = CliRunner().invoke(APP, ["--count", "3", "--out", str(out)])
    assert result.exit_code == 0, result.output
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["kind"] for line in lines] == [kind for kind in kinds() for _ in range(3)]
    drawn = [prompt for kind in kinds() for prompt in draw_prompts(kind, 3)]
    assert [line["messages"] for line in lines] == [list(prompt.messages) for prompt in drawn]
    free = {line["kind"] for line in lines if line["reply"] is None}
    assert free == {"arithmetic", "tool_result", "tool_none", "tool_loop"}
    assert all(line["later_turns"] for line in lines if line["kind"] == "follow_up")
    assert [line["sends_reasoning"] for line in lines if line["kind"] == "follow_up"] == [True, False, True]
    one = next(line for line in lines if line["kind"] == "tool_one")
    assert one["reply"]["tool_calls"][0]["function"] == one["expected"][0]
