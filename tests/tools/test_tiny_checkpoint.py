"""The tiny checkpoint: small, the same bytes every time, loadable on one rank and two, every parameter random."""

import math
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers import AutoConfig, Glm5NextConfig

from support.checkpoint_folders import all_shapes
from support.published_names import published
from twinspark_engine.model.config import AttentionKind, MlpKind, ModelConfig
from twinspark_engine.model.model import Model
from twinspark_engine.model.parameters import ModelWeights, MoeWeights
from twinspark_engine.model.rows import Rows
from twinspark_engine.model.state import ModelState
from twinspark_engine.model.weights import eos_token_ids, load_weights, masked_token_ids
from twinspark_engine.ranks.transport import LocalTransport
from twinspark_kernels.exl3 import Codebook, decode_tiles
from twinspark_kernels.experts import Exl3Experts
from twinspark_kernels.row_class import RowClass
from twinspark_tools.tiny_checkpoint import SHAPES, write_checkpoint
from twinspark_tools.tiny_checkpoint.draws import Draws
from twinspark_tools.tiny_checkpoint.shapes import config_json
from twinspark_tools.tiny_checkpoint.weights import random_tensors

COMMAND = [sys.executable, "-m", "twinspark_tools.tiny_checkpoint"]


def stored_tensors(folder: Path) -> dict[str, Tensor]:
    return {name: tensor for file in sorted(folder.glob("*.safetensors")) for name, tensor in load_file(file).items()}


def test_command_writes_the_same_bytes_as_this_process(tiny_folder: Path, tmp_path: Path) -> None:
    subprocess.run([*COMMAND, str(tmp_path / "again"), "--seed", "0"], check=True, capture_output=True)
    names = sorted(path.name for path in tiny_folder.iterdir())
    assert names == sorted(path.name for path in (tmp_path / "again").iterdir())
    for name in names:
        assert (tiny_folder / name).read_bytes() == (tmp_path / "again" / name).read_bytes(), name


def test_unknown_shape_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    done = subprocess.run([*COMMAND, str(tmp_path), "--shape", "huge"], check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert "tiny, demo" in done.stderr


def test_another_seed_gives_other_weights(tiny_folder: Path) -> None:
    config = ModelConfig.from_folder(tiny_folder)
    other = random_tensors(config, Draws(1), expert_bits=4)
    assert not torch.equal(other["lm_head.weight"], stored_tensors(tiny_folder)["lm_head.weight"])


def test_folder_is_under_ten_megabytes(tiny_folder: Path) -> None:
    assert sum(path.stat().st_size for path in tiny_folder.iterdir()) < 10_000_000


def test_shape_meets_every_constraint(tiny_folder: Path) -> None:
    config = ModelConfig.from_folder(tiny_folder)
    assert [i for i, kind in enumerate(config.attention_kinds) if kind is AttentionKind.DSA] == [3, 7]
    assert [i for i, kind in enumerate(config.mlp_kinds) if kind is MlpKind.DENSE] == [0, 1, 2]
    assert config.hidden_size % 128 == config.moe_intermediate_size % 256 == config.vocab_size % 2 == 0
    assert (config.index_topk, config.index_kpool, config.max_position_embeddings) == (64, 4, 32768)


def test_transformers_reads_the_same_config(tiny_folder: Path) -> None:
    text = AutoConfig.from_pretrained(tiny_folder).text_config
    config = ModelConfig.from_folder(tiny_folder)
    assert (text.linear_num_heads, text.linear_head_dim) == (config.linear_num_heads, config.linear_head_dim)
    again = Glm5NextConfig(text_config=text.to_dict()).to_dict()
    assert ModelConfig.from_json(again) == config


def test_demo_shape_has_the_demo_s_parameters() -> None:
    config = ModelConfig.from_json(config_json(SHAPES["demo"]))
    router_biases = 5 * 12  # buffers, not parameters, where the figure was counted
    count = sum(math.prod(shape) for shape in all_shapes(config, has_mtp=False).values())
    assert count - router_biases == 18_006_856


def test_every_parameter_is_random(tiny_folder: Path) -> None:
    for name, tensor in stored_tensors(tiny_folder).items():
        if not name.endswith(".mcg"):
            assert tensor.unique().numel() > 1, name


@pytest.mark.parametrize("world_size", [1, 2])
def test_ranks_reassemble_to_what_is_stored(tiny_folder: Path, world_size: int) -> None:
    config, stored = ModelConfig.from_folder(tiny_folder), stored_tensors(tiny_folder)
    ranks = [load_weights(tiny_folder, config, rank, world_size, torch.float32) for rank in range(world_size)]
    plain = published(config, ranks)
    assert plain.keys() == {name for name in stored if ".experts." not in name}
    for name, tensor in plain.items():
        assert torch.equal(tensor, stored[name].float()), name
    for layer in range(3, 9):
        experts = [experts_of(rank, layer) for rank in ranks]
        prefix = f"model.language_model.layers.{layer}.mlp.experts.5."
        up = torch.cat([part.up.inner[5] for part in experts], dim=1)
        down = torch.cat([part.down.inner[5] for part in experts], dim=0)
        assert torch.equal(up, decode_tiles(stored[f"{prefix}up_proj.trellis"], Codebook.MCG).float())
        assert torch.equal(down, decode_tiles(stored[f"{prefix}down_proj.trellis"], Codebook.MCG).float())


def experts_of(weights: ModelWeights, layer: int) -> Exl3Experts:
    """Routed experts of a MoE layer; number 8 is the MTP layer."""
    mlp = weights.mtp.mlp if layer == 8 and weights.mtp else weights.layers[layer].mlp
    assert isinstance(mlp, MoeWeights)
    assert isinstance(mlp.experts, Exl3Experts)
    return mlp.experts


def test_special_ids_are_those_of_the_tokenizer(tiny_folder: Path) -> None:
    vocabulary_size = ModelConfig.from_folder(tiny_folder).vocab_size
    assert masked_token_ids(tiny_folder, vocabulary_size) == {1484, *range(1512, vocabulary_size)}
    assert eos_token_ids(tiny_folder) == (1476, 1483, 1485)


def test_greedy_output_varies(tiny_folder: Path) -> None:
    config = ModelConfig.from_folder(tiny_folder)
    model = Model(config, load_weights(tiny_folder, config, 0, 1, torch.float32), LocalTransport())
    state = ModelState.allocate(config, 1, 1, 256, torch.float32)
    state.reset_slot(0)
    hidden = model.forward(Rows.segment(RowClass.PROMPT, torch.arange(100, 108), 0, 0), state)
    output: list[int] = []
    for position in range(8, 40):
        output.append(int(model.logits(hidden[-1:], RowClass.DECODE)[0, :1512].argmax()))
        hidden = model.forward(Rows.segment(RowClass.DECODE, torch.tensor(output[-1:]), 0, position), state)
    assert len(Counter(output)) > 16


def test_demo_shape_writes_and_loads(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, SHAPES["demo"])
    config = ModelConfig.from_folder(tmp_path)
    ranks = [load_weights(tmp_path, config, rank, 2, torch.float32) for rank in (0, 1)]
    assert [rank.head.shape for rank in ranks] == [(1024, 256)] * 2
