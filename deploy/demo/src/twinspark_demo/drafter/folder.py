"""The folder of a drafter that an engine loads: config.json and model.safetensors, in bfloat16."""

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from twinspark_demo.drafter.config import DrafterConfig
from twinspark_demo.drafter.model import Drafter
from twinspark_demo.drafter.parameters import tensor_shapes
from twinspark_tools.tiny_checkpoint.folder import write_json

CONFIG_NAME, WEIGHTS_NAME = "config.json", "model.safetensors"


def export_drafter(folder: Path, tensors: Mapping[str, Tensor], config: DrafterConfig) -> None:
    """Writes both files. ValueError names tensors that are missing, unknown, of another shape or not finite."""
    stored = {name: tensors[name].detach().to("cpu", torch.bfloat16).contiguous() for name in sorted(tensors)}
    check_tensors(stored, config)  # rounded, a value can be infinite
    folder.mkdir(parents=True, exist_ok=True)
    save_file(stored, folder / WEIGHTS_NAME, {"format": "pt"})
    write_json(folder / CONFIG_NAME, config.to_json())
    for name in (CONFIG_NAME, WEIGHTS_NAME):
        (folder / name).chmod(0o644)


def load_drafter(folder: Path) -> Drafter:
    """The drafter on the CPU, fp32. OSError where a file is missing; ValueError for what export_drafter refuses too."""
    config = DrafterConfig.from_json(json.loads((folder / CONFIG_NAME).read_text(encoding="utf-8")))
    stored = load_file(folder / WEIGHTS_NAME)
    others = sorted(name for name, tensor in stored.items() if tensor.dtype != torch.bfloat16)
    if others:
        raise ValueError(f"not bfloat16: {', '.join(others)}")
    drafter = Drafter(config)
    fill(drafter, stored)
    return drafter


@torch.no_grad()
def fill(drafter: Drafter, tensors: Mapping[str, Tensor]) -> None:
    """The tensors become the drafter's; ValueError as check_tensors says."""
    check_tensors(tensors, drafter.config)
    for name, parameter in drafter.named_parameters():
        parameter.copy_(tensors[name])


def check_tensors(tensors: Mapping[str, Tensor], config: DrafterConfig) -> None:
    """ValueError unless these are the drafter's tensors, all of them and finite."""
    shapes = tensor_shapes(config)
    wrong = sorted(shapes.keys() ^ tensors.keys())
    if wrong:
        raise ValueError(f"missing or unknown: {', '.join(wrong)}")
    wrong = [f"{name} {tuple(tensors[name].shape)}" for name in shapes if tuple(tensors[name].shape) != shapes[name]]
    if wrong:
        raise ValueError(f"other shapes than the config says: {', '.join(wrong)}")
    wrong = [name for name in shapes if not bool(tensors[name].isfinite().all())]
    if wrong:
        raise ValueError(f"not finite: {', '.join(wrong)}")
