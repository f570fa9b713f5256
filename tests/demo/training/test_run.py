"""A run on a small shape: it learns, stops, and goes on from its shards."""

from pathlib import Path

import pytest
import torch

from twinspark_demo.documents.mixture import KINDS
from twinspark_demo.rows.encode import Encoder
from twinspark_demo.rows.tokenizer import COMMITTED_TOKENIZER
from twinspark_demo.training.check import CheckRows, check_abilities, documents, judge
from twinspark_demo.training.cluster import Cluster
from twinspark_demo.training.model import DemoModel, ForwardOptions, Losses, TrainingBatch
from twinspark_demo.training.run import RunOptions, TrainingRun
from twinspark_demo.training.stages import Feed, Stage
from twinspark_demo.training.state import RunState, load_state

ROW = 512


def build_stage(name: str, steps: int, *, quantized: bool = False) -> Stage:
    return Stage(
        name=name,
        feeds=(Feed("short", ROW, 2, ForwardOptions(sparse=quantized, indexer_rows=4, mtp_depth=1)),),
        steps=steps,
        learning_rates=(3e-3, 1e-3),
        prompt_weight=0.1,
        warmup_steps=2,
        quantized=quantized,
    )


def build_options(folder: Path, save_every: int = 1000) -> RunOptions:
    return RunOptions(folder, COMMITTED_TOKENIZER, workers=0, report_every=2, save_every=save_every)


def tensors_of(model: DemoModel) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def test_a_run_prints_losses_that_fall_and_resumes_where_it_stopped(
    small_model: DemoModel, alone: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = TrainingRun(small_model, RunState(), alone, build_options(tmp_path))
    run.run(build_stage("first", 8))
    lines = [line for line in capsys.readouterr().out.splitlines() if " main " in line]
    losses = [float(line.split(" main ")[1].split()[0]) for line in lines]
    assert losses[-1] < losses[0] - 0.5

    trained = tensors_of(small_model)
    other = DemoModel(small_model.config, seed=2)
    state = load_state(tmp_path, other)
    assert (state.place.stage, state.place.step) == ("first", 8)
    for name, tensor in tensors_of(other).items():
        torch.testing.assert_close(tensor, trained[name], rtol=2**-8, atol=0.0)

    stages = [build_stage("first", 8), build_stage("second", 2)]
    assert [stage.name for stage in state.rest_of(stages)] == ["first", "second"]
    resumed = TrainingRun(other, state, alone, build_options(tmp_path))
    before = tensors_of(other)
    resumed.run(stages[0])
    assert all(torch.equal(tensor, before[name]) for name, tensor in tensors_of(other).items())
    resumed.run(stages[1])
    assert load_state(tmp_path, other).place.stage == "second"


def test_shards_are_written_on_the_way(small_model: DemoModel, alone: Cluster, tmp_path: Path) -> None:
    run = TrainingRun(small_model, RunState(), alone, build_options(tmp_path, save_every=2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunState, "save", lambda state, folder, model, beside: seen.append(state.place.step))
        seen: list[int] = []
        run.run(build_stage("first", 5))
    assert seen == [2, 4, 5]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_quantized_experts_stay_as_they_were_decoded_also_after_a_resume(
    small_model: DemoModel, alone: Cluster, tmp_path: Path
) -> None:
    run = TrainingRun(small_model, RunState(), alone, build_options(tmp_path))
    plain = {prefix: matrix.clone() for prefix, matrix in small_model.expert_matrices()}
    run.run(build_stage("recovery", 3, quantized=True))
    decoded = {prefix: matrix.clone() for prefix, matrix in small_model.expert_matrices()}
    errors = [float((decoded[name] - plain[name]).norm() / plain[name].norm()) for name in plain]
    assert 0.03 < max(errors) < 0.12  # 4 bits leave about 0.08 of a Gaussian matrix

    other = DemoModel(small_model.config, seed=2)
    state = load_state(tmp_path, other)
    assert state.experts is not None
    assert all(torch.equal(matrix, decoded[prefix]) for prefix, matrix in other.expert_matrices())
    TrainingRun(other, state, alone, build_options(tmp_path)).run(build_stage("recovery", 5, quantized=True))
    assert all(torch.equal(matrix, decoded[prefix]) for prefix, matrix in other.expert_matrices())
    embedding = "model.language_model.embed_tokens.weight"
    assert not torch.equal(other.get_parameter(embedding), small_model.get_parameter(embedding))


def test_a_shard_state_without_a_tensor_is_refused_by_name(small_model: DemoModel, tmp_path: Path) -> None:
    deeper = DemoModel(small_model.config, seed=3)
    plain = small_model.plain_tensors
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small_model, "plain_tensors", lambda: {k: v for k, v in plain().items() if k != "lm_head.weight"})
        RunState().save(tmp_path, small_model)
    with pytest.raises(ValueError, match=r"lm_head\.weight"):
        load_state(tmp_path, deeper)


def test_a_model_that_is_always_right_is_judged_so_and_one_wrong_token_fails_its_document(
    small_model: DemoModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = documents(Encoder.load(COMMITTED_TOKENIZER), "facts", ROW)
    rows = [[next(drawn) for _ in range(3)] for _ in range(2)]
    forward = DemoModel.forward

    def always_right(model: DemoModel, batch: TrainingBatch, options: ForwardOptions) -> Losses:
        losses = forward(model, batch, options)
        losses.correct = torch.ones_like(losses.correct)
        losses.mtp_correct = torch.ones_like(losses.correct)
        if spoil:
            second = (batch.documents[1] == 1) & (batch.weights[1] > 0)
            losses.correct[1, second.nonzero()[-1]] = False
        return losses

    monkeypatch.setattr(DemoModel, "forward", always_right)
    spoil = False
    perfect = judge(small_model, "facts", rows, ROW, ForwardOptions())
    assert (perfect.asked, perfect.right, perfect.drafts_accepted) == (6, 6, 1.0)
    spoil = True
    assert judge(small_model, "facts", rows, ROW, ForwardOptions()).right == 5


@pytest.mark.slow
def test_the_table_has_every_kind_and_the_long_needles(small_model: DemoModel) -> None:
    rows = CheckRows(short=1, long=1, long_batches=1)
    abilities = list(check_abilities(small_model, COMMITTED_TOKENIZER, rows, sparse=True))
    assert [ability.kind for ability in abilities] == [*KINDS, "needle, long"]
    assert all(ability.asked >= 1 for ability in abilities)
