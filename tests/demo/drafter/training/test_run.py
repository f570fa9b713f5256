"""Training on small targets: what learns, what stays, what a run leaves behind; eight sequences learned by heart."""

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
import typer

from support.demo_models import random_model, small_config
from support.drafters import SMALL
from twinspark_demo.checkpoint import load_shards, save_shards
from twinspark_demo.checkpoint.shards import Place
from twinspark_demo.drafter import DEMO, Drafter, DrafterConfig
from twinspark_demo.drafter.blocks import PackedRows
from twinspark_demo.drafter.drafting import draft, kept_each_round
from twinspark_demo.drafter.loss import DraftLosses, draft_losses
from twinspark_demo.drafter.target import Reading, Target
from twinspark_demo.drafter.training.__main__ import planned
from twinspark_demo.drafter.training.plan import BlockPlan
from twinspark_demo.drafter.training.run import STAGE, DrafterRun, RunOptions, load_place
from twinspark_demo.drafter.training.step import BlockBatch
from twinspark_demo.rows.dataset import RowDataset, RowTensors, Stream
from twinspark_demo.rows.tokenizer import COMMITTED_TOKENIZER
from twinspark_demo.training.cluster import Cluster
from twinspark_demo.training.model import DemoModel, TrainingBatch
from twinspark_demo.training.optimizer import FlatAdamW
from twinspark_engine.model.config import ModelConfig
from twinspark_tools.tiny_checkpoint.shapes import SHAPES, config_json

RUN = "twinspark_demo.drafter.training.run"
PROMPT, LENGTH, STEPS = 4, 24, 90


def drafter_config(config: ModelConfig) -> DrafterConfig:
    mask = config.vocab_size - 1
    return replace(SMALL, vocab_size=config.vocab_size, hidden_size=config.hidden_size, mask_token_id=mask)


@dataclass(frozen=True)
class Lesson:
    """A random target of four layers, and eight prompts of random tokens with what it says behind them."""

    model: DemoModel
    target: Target
    batch: TrainingBatch
    reading: Reading


@pytest.fixture(scope="module")
def lesson() -> Lesson:
    config = small_config()
    model = random_model(config)
    target = Target(model, (), drafter_config(config))
    tokens = torch.zeros(8, LENGTH, dtype=torch.int64)
    generator = torch.Generator().manual_seed(1)
    tokens[:, :PROMPT] = torch.randint(config.vocab_size - 2, (8, PROMPT), generator=generator)
    places = torch.arange(LENGTH).expand(8, -1)
    batch = TrainingBatch(tokens, (places >= PROMPT).float(), torch.zeros_like(tokens), places)
    for place in range(PROMPT, LENGTH):
        tokens[:, place] = target.read(batch).said[:, place - 1]
    return Lesson(model, target, batch, target.read(batch))


def packed(batch: TrainingBatch) -> PackedRows:
    return PackedRows(batch.tokens, batch.documents, batch.positions)


def losses_of(drafter: Drafter, lesson: Lesson, anchors: torch.Tensor) -> DraftLosses:
    batch = lesson.batch
    return draft_losses(drafter, lesson.target, lesson.reading, packed(batch), batch.weights > 0, anchors)


def test_eight_sequences_are_learned_by_heart(lesson: Lesson) -> None:
    drafter, target = Drafter(drafter_config(lesson.model.config), seed=1), lesson.target
    optimizer = FlatAdamW(dict(drafter.named_parameters()))
    anchors = torch.arange(PROMPT, LENGTH - 1).expand(8, -1)
    optimizer.set_rates(4e-3, 0.0)
    for step in range(STEPS):
        optimizer.zero()
        losses = losses_of(drafter, lesson, anchors[:, step % 3 :: 3])
        (losses.unary + losses.selector).backward()
        optimizer.update()
    drafts = torch.zeros(8, LENGTH, 7, dtype=torch.int64)
    lent = (target.embedding, target.head)
    drafts[:, anchors[0]] = draft(drafter, lesson.reading.taps, packed(lesson.batch), anchors, lent)
    replies, drafts = lesson.batch.tokens[:, PROMPT:], drafts[:, PROMPT:]
    kept = [kept_each_round(said, behind) for said, behind in zip(replies.tolist(), drafts.tolist(), strict=True)]
    assert sum(map(sum, kept)) / sum(map(len, kept)) > 5.5  # 19 tokens in three rounds would be 6.3


def test_gradients_reach_every_parameter_of_the_drafter_and_none_of_the_target(lesson: Lesson) -> None:
    drafter = Drafter(drafter_config(lesson.model.config), seed=1)
    losses = losses_of(drafter, lesson, torch.arange(PROMPT, LENGTH - 8, 3).expand(8, -1))
    (losses.unary + losses.selector).backward()
    assert all(parameter.grad is None for parameter in lesson.model.parameters())
    for name, parameter in drafter.named_parameters():
        assert parameter.grad is not None and bool((parameter.grad != 0).any()), name


def test_ids_that_are_never_drawn_are_never_said(lesson: Lesson) -> None:
    often = int(lesson.reading.said.flatten().mode().values)
    target = Target(lesson.model, {often}, drafter_config(lesson.model.config))
    assert not bool((target.read(lesson.batch).said == often).any())


@pytest.fixture
def small() -> tuple[Target, Drafter]:
    """A target with the demo's vocabulary, and a drafter for it."""
    shape = replace(
        SHAPES["demo"], hidden_size=64, intermediate_size=64, moe_intermediate_size=64, n_routed_experts=2, heads=2,
        head_dim=32, q_lora_rank=32, kv_lora_rank=32, index_n_heads=2, index_head_dim=32, index_topk=64, num_layers=4,
    )  # fmt: skip
    config = replace(DEMO, hidden_size=64, intermediate_size=64, num_target_layers=4, target_layer_ids=(1, 3))
    model = DemoModel(ModelConfig.from_json(config_json(shape)), seed=1)
    return Target(model, (), config), Drafter(config, seed=1)


@pytest.fixture
def saved(monkeypatch: pytest.MonkeyPatch) -> list[Place]:
    """Places of all shards that runs save."""
    places: list[Place] = []

    def save(folder: Path, tensors: dict[str, torch.Tensor], place: Place) -> None:
        places.append(place)
        save_shards(folder, tensors, place)

    monkeypatch.setattr(f"{RUN}.save_shards", save)
    return places


@pytest.fixture
def read_from(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Steps that runs read rows from."""
    steps: list[int] = []

    def dataset(stream: Stream) -> RowDataset:
        steps.append(stream.first_step)
        return RowDataset(stream)

    monkeypatch.setattr(f"{RUN}.RowDataset", dataset)
    return steps


@pytest.fixture
def trained_on(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Rows that a run's own batches are filled with: not those of its check."""
    rows: list[bytes] = []

    class Watched(BlockBatch):
        def fill(self, fresh: RowTensors) -> None:
            rows.append(fresh.tokens.numpy().tobytes())
            super().fill(fresh)

    monkeypatch.setattr(f"{RUN}.BlockBatch", Watched)
    return rows


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_run_reports_saves_and_goes_on(
    small: tuple[Target, Drafter],
    saved: list[Place],
    read_from: list[int],
    trained_on: list[bytes],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    target, drafter = small
    before = {name: parameter.detach().clone() for name, parameter in drafter.named_parameters()}
    options = RunOptions(tmp_path, COMMITTED_TOKENIZER, workers=0, report_every=2, save_every=3)
    alone, plan = Cluster(0, 1, torch.device("cpu")), BlockPlan(steps=4, short_rows=2, long_rows=0, blocks=64)
    DrafterRun(drafter, target, Place(STAGE, 0, 0), alone, options).run(plan)
    lines = capsys.readouterr().out.splitlines()
    losses = [float(line.split(" unary ")[1].split()[0]) for line in lines if " unary " in line]
    assert len(losses) == 2 and all(6 < loss < 9 for loss in losses)  # ln 2048 is 7.6
    kept = [line.split()[2::2] for line in lines if "  kept " in line]
    assert kept == [["arithmetic", "facts"]] * 2
    assert not any(torch.equal(parameter, before[name]) for name, parameter in drafter.named_parameters())

    other = Drafter(drafter.config, seed=2)
    place = load_place(tmp_path, other)
    assert place == Place(STAGE, 4, 0)
    for (name, ours), theirs in zip(other.named_parameters(), drafter.parameters(), strict=True):
        assert torch.equal(ours, theirs.bfloat16().float()), name
    DrafterRun(other, target, place, alone, options).run(replace(plan, steps=5))
    assert "from step 4 of 5" in (printed := capsys.readouterr().out)
    assert printed.count(" unary ") == 1
    assert load_shards(tmp_path)[1].step == 5
    assert [place.step for place in saved] == [3, 4, 5]
    assert read_from == [0, 4]
    assert len(set(trained_on)) == len(trained_on) == 1 + 4 + 1 + 1  # one before the first step of each run


def test_shards_of_another_stage_are_refused(small: tuple[Target, Drafter], tmp_path: Path) -> None:
    tensors = {name: parameter.detach() for name, parameter in small[1].named_parameters()}
    save_shards(tmp_path, tensors, Place("short", 7, 0))
    with pytest.raises(ValueError, match="its stage is short"):
        load_place(tmp_path, small[1])


def test_a_plan_alternates_rows_and_its_rate_falls() -> None:
    plan = BlockPlan(steps=1000)
    assert [plan.turn(step) for step in range(5)] == ["short", "short", "short", "long", "short"]
    assert {replace(plan, long_rows=0).turn(step) for step in range(8)} == {"short"}
    assert [plan.share("short"), plan.share("long")] == [0.75, 0.25]
    assert plan.rate(0, 0) == pytest.approx(1e-3 / 200)
    assert plan.rate(500, 500) == pytest.approx(5.05e-4)
    assert plan.rate(1000, 1000) == pytest.approx(1e-5)


def test_sizes_that_name_nothing_are_refused() -> None:
    assert planned(7, ["long_rows=0", "blocks=3"]) == BlockPlan(7, long_rows=0, blocks=3)
    for wrong in ("rows=3", "blocks", "blocks=0", "short_rows=-1"):
        with pytest.raises(typer.BadParameter, match="NAME=N is needed"):
            planned(7, [wrong])
