"""Weights of another run: every expert trains again, and rows follow their tokens to new ids."""

import json
from pathlib import Path

import pytest
import torch

from twinspark_demo.quantization import Exl3Tensors, dequantize
from twinspark_demo.training.model import DemoModel
from twinspark_demo.training.start import TOKENIZER_NAME, start_from
from twinspark_demo.training.state import RunState
from twinspark_engine.model.weights.names import EMBED, HEAD
from twinspark_kernels.exl3 import Codebook

VOCABULARY = 2048


def write_tokenizer(path: Path, tokens: list[str]) -> Path:
    """A tokenizer.json with these tokens, and one added token before the spare rows."""
    vocabulary = {token: index for index, token in enumerate(tokens)}
    added = [{"content": "<end>", "id": len(tokens)}]
    path.write_text(json.dumps({"model": {"vocab": vocabulary}, "added_tokens": added}), encoding="utf-8")
    return path


def test_rows_follow_their_tokens(small_model: DemoModel, tmp_path: Path) -> None:
    RunState().save(tmp_path, small_model)
    size = VOCABULARY - 5
    old = [f"t{index}" for index in range(size)]
    write_tokenizer(tmp_path / TOKENIZER_NAME, old)
    new = [*old[10:], *old[:8], "fresh", "other"]
    other = DemoModel(small_model.config, seed=9)
    fresh = other.get_parameter(EMBED).detach().clone()
    start_from(tmp_path, other, write_tokenizer(tmp_path / "new.json", new))
    for name in (EMBED, HEAD):
        before = small_model.get_parameter(name).detach().bfloat16().float()
        after = other.get_parameter(name).detach()
        assert torch.equal(after[: size - 10], before[10:size])
        assert torch.equal(after[size - 10 : size - 2], before[:8])
        assert torch.equal(after[size:], before[size:])
    assert torch.equal(other.get_parameter(EMBED)[size - 2 : size], fresh[size - 2 : size])


def test_quantized_experts_train_again(small_model: DemoModel, tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(0)
    experts = {}
    for prefix, matrix in small_model.expert_matrices():
        outputs, inputs = matrix.shape
        trellis = torch.randint(-(2**15), 2**15, (inputs // 16, outputs // 16, 64), generator=generator)
        scales = torch.full((inputs,), 0.01).half(), torch.ones(outputs).half()
        experts[prefix] = Exl3Tensors(trellis.to(torch.int16), *scales, Codebook.MCG)
    RunState(experts=experts).save(tmp_path, small_model)
    tokenizer = write_tokenizer(tmp_path / TOKENIZER_NAME, [f"t{index}" for index in range(VOCABULARY - 25)])
    other = DemoModel(small_model.config, seed=9)
    start_from(tmp_path, other, tokenizer)
    assert all(torch.equal(matrix, dequantize(experts[prefix])) for prefix, matrix in other.expert_matrices())
    assert all(parameter.requires_grad for parameter in other.parameters())


def test_a_folder_without_a_tokenizer_is_refused(small_model: DemoModel, tmp_path: Path) -> None:
    RunState().save(tmp_path, small_model)
    tokenizer = write_tokenizer(tmp_path / "new.json", ["t"])
    with pytest.raises(FileNotFoundError, match=r"holds no tokenizer\.json"):
        start_from(tmp_path, small_model, tokenizer)
