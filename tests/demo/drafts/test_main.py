"""The program: table, JSON and exit status follow what the model says and drafts; and the published model's share."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
import typer
from typer.testing import CliRunner, Result

from twinspark_demo.drafts.__main__ import main
from twinspark_demo.drafts.measure import measure
from twinspark_demo.drafts.report import JUDGED_KINDS
from twinspark_demo.drafts.template import DEMO_FOLDER
from twinspark_demo.training.model import ForwardOptions, Predictions, TrainingBatch
from twinspark_engine.model.config import ModelConfig

APP = typer.Typer()
APP.command()(main)
COUNT = 4
ROOM_ID = 2040


@dataclass(frozen=True)
class Parrot:
    """Stands for a model: reads ahead in the text; its drafts err where a token's row divides by `errs_at`."""

    config: ModelConfig
    errs_at: int
    is_right: bool

    def predictions(self, batch: TrainingBatch, options: ForwardOptions) -> Predictions:
        rows = torch.arange(batch.tokens.shape[1])
        drafted = torch.where(rows % self.errs_at == 0, 0, batch.tokens)
        said = batch.tokens if self.is_right else torch.zeros_like(batch.tokens)
        logits = self._certain(said.roll(-1, 1))
        drafts = self._certain(drafted.roll(-2, 1))
        return Predictions(logits, (drafts,) * options.mtp_depth, logits)

    def _certain(self, tokens: torch.Tensor) -> torch.Tensor:
        logits = torch.zeros(*tokens.shape, self.config.vocab_size).scatter_(2, tokens[..., None], 1.0)
        logits[..., ROOM_ID] = 2.0  # a row that no token has: an engine never draws it
        return logits


def run(folder: Path, *arguments: object) -> Result:
    return CliRunner().invoke(APP, ["--model", str(folder), "--count", str(COUNT), *map(str, arguments)])


@pytest.fixture
def parrot(monkeypatch: pytest.MonkeyPatch, served_folder: Path) -> Callable[[int, bool], None]:
    """Puts a parrot in the place of the folder's model."""

    def put(errs_at: int, is_right: bool = True) -> None:
        stand_in = Parrot(ModelConfig.from_folder(served_folder), errs_at, is_right)
        monkeypatch.setattr("twinspark_demo.drafts.measure.load_folder", lambda _: stand_in)

    return put


def test_good_drafts_pass_and_are_counted(parrot: Callable[..., None], served_folder: Path, tmp_path: Path) -> None:
    parrot(10)
    result = run(served_folder, "--json", tmp_path / "new" / "report.json")
    assert result.exit_code == 0, result.output
    report = json.loads((tmp_path / "new" / "report.json").read_text())
    assert {"time", "commit", "machine", "versions", "settings"} <= report.keys()
    assert report["settings"] | {"weights_sha256": ""} == {
        "model": "model", "weights_sha256": "", "count": COUNT, "seed": 905_417_263,
        "least_share": 0.85, "judged_kinds": list(JUDGED_KINDS),
    }  # fmt: skip
    assert len(report["settings"]["weights_sha256"]) == 64
    lines = {cells[0]: cells[1:] for cells in map(str.split, result.stdout.splitlines()) if cells[0] in JUDGED_KINDS}
    for kind in report["kinds"]:
        first, second, third = kind["drafts"]
        assert first["drafted"] == kind["output_tokens"] - COUNT
        assert (second["drafted"], third["drafted"]) == (first["drafted"] - COUNT, first["drafted"] - 2 * COUNT)
        assert 0.85 < first["share"] == first["accepted"] / first["drafted"] < 1
        assert second["share"] == pytest.approx(1 - 2 * (1 - first["share"]), abs=0.05)
        shares = [f"{100 * draft['share']:.1f}" for draft in kind["drafts"]]
        assert lines[kind["kind"]] == ["4", "4", "0", str(kind["output_tokens"]), *shares]
    assert list(lines) == list(JUDGED_KINDS)


def test_one_poor_kind_of_those_that_are_judged_fails(parrot: Callable[..., None], served_folder: Path) -> None:
    parrot(6)
    assert run(served_folder, "--kinds", "json").exit_code == 1
    assert run(served_folder, "--kinds", "tool_two").exit_code == 0


def test_a_model_that_says_nothing_right_fails(
    parrot: Callable[..., None], served_folder: Path, tmp_path: Path
) -> None:
    parrot(1000, is_right=False)
    result = run(served_folder, "--kinds", "copy", "--json", tmp_path / "report.json")
    assert result.exit_code == 1
    (kind,) = json.loads((tmp_path / "report.json").read_text())["kinds"]
    assert (kind["right"], kind["cut"], kind["output_tokens"]) == (0, COUNT, COUNT)
    assert kind["tokens_left_out"] > COUNT
    assert [draft["share"] for draft in kind["drafts"]] == [None] * 3


def test_other_seeds_ask_other_prompts(parrot: Callable[..., None], served_folder: Path) -> None:
    parrot(1000)
    tables = [run(served_folder, "--kinds", "copy", "--seed", seed).stdout for seed in (1, 1, 2)]
    assert tables[0] == tables[1] != tables[2]


def test_a_folder_of_random_weights_is_read_to_its_end(served_folder: Path) -> None:
    result = run(served_folder, "--kinds", "copy,facts")
    assert result.exit_code == 1
    cells = [line.split() for line in result.stdout.splitlines()]
    assert [row[:4] for row in cells[1:]] == [["facts", "4", "0", "4"], ["copy", "4", "0", "4"]]


@pytest.mark.parametrize(
    ("kinds", "said"), [("poetry", "unknown kind poetry"), ("arithmetic", "arithmetic: a kind is needed")]
)
def test_a_kind_that_cannot_be_measured_is_named(kinds: str, said: str, served_folder: Path) -> None:
    result = run(served_folder, "--kinds", kinds)
    assert result.exit_code == 1
    assert said in result.output


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    result = run(tmp_path / "nowhere")
    assert result.exit_code == 1
    lacks = "config.json, chat_template.jinja, tokenizer.json"
    assert result.output == f"{tmp_path / 'nowhere'}: it lacks {lacks}: give --model a folder that is served\n"


def test_a_report_that_could_not_be_written_is_refused_before_anything_is_measured(
    served_folder: Path, tmp_path: Path
) -> None:
    result = run(served_folder, "--kinds", "copy", "--json", tmp_path)
    assert result.exit_code == 1
    assert f"--json {tmp_path} is a folder" in result.output
    assert "[drafts]" not in result.output


@pytest.mark.slow
def test_the_published_model_drafts_well() -> None:
    for kind in measure(DEMO_FOLDER, JUDGED_KINDS, count=6, seed=11):
        share = kind.share(1)
        assert share is not None, kind.kind
        assert share >= 0.8, kind.kind
        assert kind.num_right >= 4, kind.kind
