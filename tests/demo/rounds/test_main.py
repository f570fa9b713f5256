"""The program: table, JSON and exit status follow from what the drafter drafts."""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from twinspark_demo.drafter.model import Drafter
from twinspark_demo.drafts.report import weights_digest
from twinspark_demo.evaluation.drawing import SEED, kinds
from twinspark_demo.rounds.__main__ import main
from twinspark_demo.rounds.engine import Said, ServedTarget
from twinspark_demo.rounds.measure import KindRounds, ReplyRounds
from twinspark_demo.rounds.replies import askable_kinds
from twinspark_demo.rounds.report import format_table, mark_of, parts_of_needles, reaches_mark

APP = typer.Typer()
APP.command()(main)
OUTPUT = 20  # tokens of each reply: random weights never end one


def run(model: Path, drafter: Path, *arguments: object) -> Result:
    options = ["--model", str(model), "--drafter", str(drafter), "--count", "2", *map(str, arguments)]
    return CliRunner(env={"COLUMNS": "200"}).invoke(APP, options)


@pytest.fixture
def reads_ahead(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Puts the target's own next tokens in the place of the drafts, so many of them right."""
    monkeypatch.setattr("twinspark_demo.rounds.engine.MAX_TOKENS", OUTPUT)

    def put(right: int) -> None:
        def drafts_of(said: Said, drafter: Drafter, target: ServedTarget) -> list[list[int]]:
            places = range(1, len(said.tokens))
            return [([*said.tokens[place : place + right]] + [-1] * 7)[:7] for place in places]

        monkeypatch.setattr("twinspark_demo.rounds.measure.drafts_of", drafts_of)

    return put


def test_right_drafts_reach_every_mark(
    reads_ahead: Callable[[int], None], served_folder: Path, drafter_folder: Path, tmp_path: Path
) -> None:
    reads_ahead(7)
    result = run(served_folder, drafter_folder, "--kinds", "copy,follow_up", "--json", tmp_path / "new" / "report.json")
    assert result.exit_code == 0, result.output
    report = json.loads((tmp_path / "new" / "report.json").read_text())
    copy, follow_up = report["kinds"]
    assert [one["kept"] for one in copy["replies"]] == [[8, 8, 3]] * 2
    assert len(follow_up["replies"]) == 8  # four turns of two conversations
    prompts = [one["prompt_tokens"] for one in follow_up["replies"][:4]]
    assert all(later > earlier + OUTPUT for earlier, later in pairwise(prompts))
    assert copy["kept_a_round"] == copy["kept_at_most"] == pytest.approx(19 / 3)
    cells = next(line.split() for line in result.stdout.splitlines() if line.startswith("copy"))
    assert [cells[1], *cells[3:]] == ["2", "20", "6", "6.33", "6.33", "3.5"]
    assert report["settings"] == {
        "model": served_folder.name, "weights_sha256": weights_digest(served_folder), "count": 2, "seed": SEED,
        "drafter_sha256": hashlib.sha256((drafter_folder / "model.safetensors").read_bytes()).hexdigest(),
    }  # fmt: skip
    assert report["good_enough"]


def test_a_kind_under_its_mark_fails(
    reads_ahead: Callable[[int], None], served_folder: Path, drafter_folder: Path, tmp_path: Path
) -> None:
    reads_ahead(1)
    assert run(served_folder, drafter_folder, "--kinds", "facts").exit_code == 1  # 19 tokens in ten rounds
    reads_ahead(2)
    assert run(served_folder, drafter_folder, "--kinds", "facts").exit_code == 0
    result = run(served_folder, drafter_folder, "--kinds", "copy,facts", "--json", tmp_path / "report.json")
    assert result.exit_code == 1
    assert "3.5 missed" in result.output
    report = json.loads((tmp_path / "report.json").read_text())
    assert {kind["kind"]: kind["reaches_mark"] for kind in report["kinds"]} == {"facts": True, "copy": False}
    assert not report["good_enough"]


def test_a_random_drafter_is_measured_to_its_end(
    served_folder: Path, drafter_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("twinspark_demo.rounds.engine.MAX_TOKENS", OUTPUT)
    result = run(served_folder, drafter_folder, "--kinds", "copy")
    assert result.exit_code == 1
    cells = next(line.split() for line in result.stdout.splitlines() if line.startswith("copy"))
    assert 1.0 <= float(cells[5]) < 3.0


def test_a_drafter_for_another_target_is_refused(served_folder: Path, tmp_path: Path) -> None:
    result = run(served_folder, tmp_path)
    assert result.exit_code == 1
    assert "config.json" in result.output


def test_kinds_that_only_a_server_can_ask_are_left_out(served_folder: Path, drafter_folder: Path) -> None:
    others = {"tool_loop", "tool_required", "tool_named", "tool_parallel", "json_schema"}
    assert askable_kinds() == [kind for kind in kinds() if kind not in others]
    result = run(served_folder, drafter_folder, "--kinds", "json_schema")
    assert result.exit_code == 1
    assert "json_schema is asked of a server" in result.output


def test_without_names_every_kind_that_can_be_asked_is_measured(
    monkeypatch: pytest.MonkeyPatch, served_folder: Path, drafter_folder: Path
) -> None:
    asked: list[str] = []

    def measure(model: Path, drafter: Path, kinds: Sequence[str], count: int, seed: int) -> Iterator[KindRounds]:
        asked.extend(kinds)
        return iter(())

    monkeypatch.setattr("twinspark_demo.rounds.__main__.measure", measure)
    run(served_folder, drafter_folder)
    assert asked == askable_kinds()


def test_a_kind_at_its_mark_reaches_it() -> None:
    assert reaches_mark(KindRounds("copy", [ReplyRounds(9, 8, [4, 3], 8)]))
    assert not reaches_mark(KindRounds("copy", [ReplyRounds(9, 8, [4, 3], 8), ReplyRounds(9, 4, [3], 8)]))


def test_replies_limit_what_rounds_can_keep() -> None:
    """Blocks of eight: two rounds for 16 tokens behind the first, one for three."""
    kind = KindRounds("copy", [ReplyRounds(10, 17, [1] * 16, 8), ReplyRounds(20, 4, [3], 8)])
    assert (kind.rounds, kind.kept, kind.most) == (17, 19 / 17, 19 / 3)
    assert (kind.prompt_tokens, kind.output_tokens) == (15, 10.5)


def test_needles_are_told_once_more_by_whether_their_code_is_seen() -> None:
    seen, unseen = ReplyRounds(9, 8, [7], 8, sees_code=True), ReplyRounds(900, 4, [1, 1, 1], 8, sees_code=False)
    needles = [KindRounds("needle_100", [seen, unseen]), KindRounds("needle_1000", [unseen])]
    parts = parts_of_needles([KindRounds("copy", [ReplyRounds(9, 8, [7], 8)]), *needles])
    assert parts == [KindRounds("code seen", [seen]), KindRounds("code unseen", [unseen] * 2)]
    assert format_table(needles).splitlines()[-1].split() == [
        "code",
        "unseen",
        *["2", "900", "4", "6", "1.00", "3.00", "2.0", "missed"],
    ]
    assert parts_of_needles([KindRounds("copy", [ReplyRounds(9, 8, [7], 8)])]) == []


def test_a_kind_without_rounds_misses_its_mark() -> None:
    assert not reaches_mark(KindRounds("facts", [ReplyRounds(9, 1, [], 8)]))
    assert [mark_of(kind) for kind in ("copy", "json", "rename", "facts", "needle_8000")] == [3.5, 3.5, 3.5, 2, 2]
