"""Writes the folder that the engine serves: published names and files, EXL3 experts."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from twinspark_demo.checkpoint.parts import as_stored, deal_out
from twinspark_demo.quantization.exl3_tensors import Exl3Tensors
from twinspark_demo.rows.tokenizer import COMMITTED_TOKENIZER
from twinspark_engine.model.weights.plan import build_plan
from twinspark_tools.tiny_checkpoint.folder import write_settings, write_shards
from twinspark_tools.tiny_checkpoint.shapes import Shape
from twinspark_tools.tiny_checkpoint.special_tokens import SPECIAL_TOKENS

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")
MOST_RANKS = 2


def export(
    folder: Path,
    parameters: Mapping[str, Tensor],
    experts: Mapping[str, Exl3Tensors],
    shape: Shape,
    tokenizer: Path = COMMITTED_TOKENIZER.parent,
) -> None:
    """Writes config, tokenizer, chat template and shards of at most 15 MB; every file is readable by all.

    parameters: by published name, fp32 ones are rounded to what is published (bf16, a few stay fp32); experts: by
    published prefix without its last dot; tokenizer: folder of tokenizer.json and tokenizer_config.json. Raises
    CheckpointError where the engine would refuse the folder, ValueError if the tokenizer's ids are not the shape's.
    """
    _check_tokenizer(tokenizer / "tokenizer.json", shape)
    folder.mkdir(parents=True, exist_ok=True)
    config = write_settings(folder, shape)
    for name in TOKENIZER_FILES:
        shutil.copyfile(tokenizer / name, folder / name)
    tensors = dict(parameters)
    for prefix, matrix in experts.items():
        tensors |= matrix.named(prefix)
    write_shards(folder, deal_out(as_stored(tensors)))
    for file in folder.iterdir():
        file.chmod(0o644)
    build_plan(folder, config, MOST_RANKS)


def _check_tokenizer(path: Path, shape: Shape) -> None:
    """ValueError unless every special token has the id that config.json will give it."""
    added = json.loads(path.read_text(encoding="utf-8"))["added_tokens"]
    ids = {token["content"]: token["id"] for token in added}
    for token, _ in SPECIAL_TOKENS:
        if ids.get(token) != shape.special_id(token):
            raise ValueError(f"{path}: {token} has id {ids.get(token)}, the shape says {shape.special_id(token)}")
