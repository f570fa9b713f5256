"""Starting the plan with the weights of an earlier run, also of one that had another tokenizer."""

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from twinspark_demo.checkpoint.shards import load_shards
from twinspark_demo.quantization import collect, dequantize
from twinspark_demo.training.model import DemoModel
from twinspark_demo.training.state import load_plain
from twinspark_engine.model.weights.names import EMBED, HEAD

TOKENIZER_NAME = "tokenizer.json"


def start_from(folder: Path, model: DemoModel, tokenizer: Path) -> None:
    """Fills the model from the shards of another run, experts included, and everything trains.

    Each row of the embedding and of the head goes to the id that the run's tokenizer gives to its token; a token that
    the folder's own tokenizer lacks keeps the model's fresh rows. Raises what load_shards and load_plain raise, and
    FileNotFoundError for a folder without a tokenizer.
    """
    tensors, _ = load_shards(folder)
    if not (folder / TOKENIZER_NAME).is_file():
        raise FileNotFoundError(f"{folder} holds no {TOKENIZER_NAME}: put the one of its run there")
    old, new = _ids(folder / TOKENIZER_NAME), _ids(tokenizer)
    moved = torch.tensor([(old[token], row) for token, row in new.items() if token in old]).view(-1, 2).t()
    for name in (EMBED, HEAD):
        tensors[name] = _with_rows(tensors[name], model.plain_tensors()[name], moved, max(new.values()) + 1)
    load_plain(model, tensors)
    quantized = collect(tensors)
    model.set_expert_matrices(
        {
            prefix: dequantize(quantized[prefix]) if quantized else tensors[f"{prefix}.weight"]
            for prefix, _ in model.expert_matrices()
        }
    )


def _ids(tokenizer: Path) -> Mapping[str, int]:
    """Id of every token, added ones included."""
    content = json.loads(tokenizer.read_text(encoding="utf-8"))
    vocabulary: dict[str, int] = content["model"]["vocab"]
    return vocabulary | {token["content"]: token["id"] for token in content["added_tokens"]}


def _with_rows(stored: Tensor, fresh: Tensor, moved: Tensor, num_ids: int) -> Tensor:
    """fresh [V, D] with stored's rows moved [2, M] from where they were to where they go; those past the ids stay."""
    table = fresh.detach().cpu().float().clone()
    table[num_ids:] = stored[num_ids:].float()
    table[moved[1]] = stored[moved[0]].float()
    return table
