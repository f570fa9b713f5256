"""The exported folder: every tensor as published, served by the engine like the model that was trained."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from twinspark_demo.checkpoint import export
from twinspark_demo.checkpoint.parts import SHARD_BYTES
from twinspark_demo.quantization import collect, dequantize
from twinspark_demo.training.model import DemoModel, ForwardOptions, TrainingBatch
from twinspark_engine.model.checkpoint_error import CheckpointError
from twinspark_engine.model.config import ModelConfig
from twinspark_engine.model.model import Model
from twinspark_engine.model.rows import Rows
from twinspark_engine.model.state import ModelState
from twinspark_engine.model.weights import eos_token_ids, load_weights, masked_token_ids
from twinspark_engine.ranks.transport import LocalTransport
from twinspark_kernels.experts import reference
from twinspark_kernels.hadamard import hadamard
from twinspark_kernels.row_class import RowClass
from twinspark_tools.tiny_checkpoint.draws import Draws
from twinspark_tools.tiny_checkpoint.shapes import SHAPES, config_json
from twinspark_tools.tiny_checkpoint.weights import random_tensors

TOKENS = 2048  # the committed tokenizer's, room included
SHAPE = replace(SHAPES["tiny"], vocab_size=TOKENS)
DENSE_ROWS = SHAPE.index_topk + 3  # from then on the indexer chooses
# Of a row of logits, relative. With rounded expert inputs a row now and then meets a near tie of a router or an indexer
# that the rounding decides otherwise, and later rows read what it left behind.
FP32_ERROR = 1e-4
ROUNDED_ERROR = 2e-3  # of most rows


@pytest.fixture(scope="module")
def tensors() -> dict[str, Tensor]:
    """Random values for everything, none neutral."""
    return random_tensors(ModelConfig.from_json(config_json(SHAPE)), Draws(3), SHAPE.expert_bits)


@pytest.fixture(scope="module")
def trained(tensors: dict[str, Tensor]) -> DemoModel:
    """The trainable model with these values and decoded experts."""
    model = DemoModel(ModelConfig.from_json(config_json(SHAPE)))
    with torch.no_grad():
        for name, tensor in model.plain_tensors().items():
            tensor.copy_(tensors[name])
    model.freeze_experts({prefix: dequantize(matrix) for prefix, matrix in collect(tensors).items()})
    return model


@pytest.fixture(scope="module")
def folder(trained: DemoModel, tensors: dict[str, Tensor], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Exported from the trainable model."""
    folder = tmp_path_factory.mktemp("exported") / "model"
    export(folder, trained.plain_tensors(), collect(tensors), SHAPE)
    return folder


def stored_tensors(folder: Path) -> dict[str, Tensor]:
    return {name: tensor for file in folder.glob("*.safetensors") for name, tensor in load_file(file).items()}


def engine_logits(folder: Path, ids: Tensor) -> Tensor:
    config = ModelConfig.from_folder(folder)
    state = ModelState.allocate(config, 1, 1, 1024, torch.float32)
    state.reset_slot(0)
    with torch.inference_mode():
        model = Model(config, load_weights(folder, config, 0, 1, torch.float32), LocalTransport())
        hidden = model.forward(Rows.segment(RowClass.PROMPT, ids, 0, 0), state)
        return model.logits(hidden, RowClass.PROMPT)


@torch.no_grad()
def trained_logits(model: DemoModel, ids: Tensor) -> Tensor:
    padding = -len(ids) % 16
    tokens = torch.nn.functional.pad(ids, (0, padding))[None]
    positions = torch.arange(tokens.shape[1])[None]
    batch = TrainingBatch(tokens, torch.zeros(tokens.shape), torch.zeros_like(tokens), positions)
    return model.predictions(batch, ForwardOptions(sparse=True)).logits[0, : len(ids)]


def row_errors(folder: Path, trained: DemoModel, length: int) -> Tensor:
    """Relative distance of each row of logits, engine to trained model."""
    ids = torch.randint(0, SHAPE.first_special_id, (length,), generator=torch.Generator().manual_seed(length))
    expected, actual = trained_logits(trained, ids), engine_logits(folder, ids)
    errors: Tensor = (actual - expected).norm(dim=1) / expected.norm(dim=1)
    return errors


@pytest.mark.parametrize("length", [DENSE_ROWS, 100, 600])
def test_engine_without_its_rounding_computes_the_trained_model_s_logits(
    folder: Path, trained: DemoModel, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reference, "rotate_in", lambda x, suh: hadamard(x * suh.float()))
    assert row_errors(folder, trained, length).max() < FP32_ERROR


def test_engine_as_it_rounds_computes_nearly_the_same_logits(folder: Path, trained: DemoModel) -> None:
    assert row_errors(folder, trained, 100).quantile(0.9) < ROUNDED_ERROR


def test_every_tensor_is_stored_in_its_published_dtype(folder: Path, tensors: dict[str, Tensor]) -> None:
    stored = stored_tensors(folder)
    assert stored.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert stored[name].dtype == tensor.dtype, name
        assert torch.equal(stored[name].flatten(), tensor.flatten()), name


def test_folder_declares_what_clients_need(folder: Path) -> None:
    assert json.loads((folder / "generation_config.json").read_text()) == {
        "eos_token_id": SHAPE.eos_token_ids,
        "pad_token_id": SHAPE.special_id("<|endoftext|>"),
        "temperature": 1.0,
        "top_p": 0.95,
    }
    assert eos_token_ids(folder) == tuple(SHAPE.eos_token_ids)
    assert masked_token_ids(folder, TOKENS) == {SHAPE.special_id("<|assistant|>"), *range(2024, TOKENS)}


def test_files_are_readable_by_all(folder: Path) -> None:
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o644}


def test_demo_shape_is_cut_into_small_shards(tmp_path: Path) -> None:
    tensors = random_tensors(ModelConfig.from_json(config_json(SHAPES["demo"])), Draws(0), 4)
    export(tmp_path, {n: t for n, t in tensors.items() if ".experts." not in n}, collect(tensors), SHAPES["demo"])
    sizes = [file.stat().st_size for file in tmp_path.glob("*.safetensors")]
    assert len(sizes) == 2
    assert max(sizes) <= SHARD_BYTES
    assert sum(sizes) < 25_000_000


def test_a_second_export_leaves_no_shard_of_the_first(
    folder: Path, trained: DemoModel, tensors: dict[str, Tensor]
) -> None:
    stale = folder / "model-00001-of-00007.safetensors"
    stale.write_bytes(b"")
    export(folder, trained.plain_tensors(), collect(tensors), SHAPE)
    assert not stale.exists()


def test_a_missing_parameter_is_named(trained: DemoModel, tensors: dict[str, Tensor], tmp_path: Path) -> None:
    parameters = trained.plain_tensors()
    del parameters["model.language_model.layers.8.eh_proj.weight"]
    with pytest.raises(CheckpointError, match=r"layers\.8\.eh_proj\.weight"):
        export(tmp_path, parameters, collect(tensors), SHAPE)


def test_a_tokenizer_with_other_ids_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"<\|endoftext\|> has id 1988, the shape says 1476"):
        export(tmp_path, {}, {}, SHAPES["tiny"])
