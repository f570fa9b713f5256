"""Reads a folder that the engine serves back into the trainable model."""

from pathlib import Path

from safetensors.torch import load_file

from twinspark_demo.quantization import collect
from twinspark_demo.training.model import DemoModel
from twinspark_demo.training.quantize import freeze
from twinspark_demo.training.state import load_plain
from twinspark_engine.model.config import ModelConfig
from twinspark_engine.model.weights.headers import checkpoint_files
from twinspark_engine.model.weights.plan import build_plan
from twinspark_engine.model.weights.quantization import Quantization


def load_folder(folder: Path, *, compiled: bool = False) -> DemoModel:
    """The model on the CPU, fp32: what the engine computes from the folder, but for its rounding of experts' inputs.

    Raises CheckpointError where the engine would refuse the folder, ValueError if its routed experts are not EXL3 or
    it has no MTP layer. Tensors of the vision tower are left out.
    """
    config = ModelConfig.from_folder(folder)
    plan = build_plan(folder, config, world_size=1)
    if plan.quantization is not Quantization.EXL3_EXPERTS:
        raise ValueError(f"{folder.name}: the routed experts are not EXL3")
    if not plan.has_mtp:
        raise ValueError(f"{folder.name}: there is no MTP layer")
    tensors = {name: tensor for file in checkpoint_files(folder) for name, tensor in load_file(file).items()}
    model = DemoModel(config, compiled=compiled)
    load_plain(model, tensors)
    freeze(model, collect(tensors))
    return model
