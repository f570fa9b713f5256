"""The start-up check: passes with the real ops, and refuses a machine on which an op is not row invariant."""

from pathlib import Path

import pytest
import torch

from support.row_invariance import product_by_row_count
from twinspark_engine.machine_check import check_machine
from twinspark_engine.model.config import ModelConfig
from twinspark_engine.model.parameters import ModelWeights
from twinspark_engine.model.weights import load_weights
from twinspark_kernels import self_check
from twinspark_kernels.row_class import RowClass
from twinspark_kernels.self_check import RowInvarianceError
from twinspark_tools.tiny_checkpoint import SHAPES, write_checkpoint


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> tuple[ModelConfig, ModelWeights]:
    folder: Path = tmp_path_factory.mktemp("checkpoint")
    write_checkpoint(folder, SHAPES["tiny"], 0)
    config = ModelConfig.from_folder(folder)
    return config, load_weights(folder, config, 0, 2, torch.float32, lambda _done, _total: None)


def test_this_machine_passes(loaded: tuple[ModelConfig, ModelWeights]) -> None:
    check_machine(*loaded)


def test_a_product_that_follows_the_row_count_is_refused_by_name(
    loaded: tuple[ModelConfig, ModelWeights], monkeypatch: pytest.MonkeyPatch
) -> None:
    def plain(x: torch.Tensor, weight: torch.Tensor, *, row_class: RowClass) -> torch.Tensor:
        return product_by_row_count(x, weight)

    monkeypatch.setattr(self_check, "linear", plain)
    with pytest.raises(RowInvarianceError, match=r"linear \d+ x \d+"):
        check_machine(*loaded)
