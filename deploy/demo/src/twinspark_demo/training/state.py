"""What a stopped run leaves behind and a resumed one starts from: parameters and the place in the plan.

Parameters are kept as a checkpoint has them, in bfloat16 but for the tensors that it stores in fp32; experts are plain
matrices until they are quantized. The optimizer starts anew, with its warm-up.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from twinspark_demo.checkpoint.shards import Place, load_shards, save_shards
from twinspark_demo.quantization import Exl3Tensors, collect
from twinspark_demo.training.model import DemoModel
from twinspark_demo.training.quantize import freeze
from twinspark_demo.training.stages import Stage

NOWHERE = Place(stage="", step=0, seed=0)


@dataclass(frozen=True, slots=True)
class RunState:
    """How far a run is; the parameters themselves are the model's."""

    place: Place = NOWHERE
    experts: Mapping[str, Exl3Tensors] | None = None  # by published prefix, once they are quantized

    def steps_done(self, stage: Stage) -> int:
        """Steps of this stage that are done."""
        return self.place.step if self.place.stage == stage.name else 0

    def rest_of(self, stages: Sequence[Stage]) -> Sequence[Stage]:
        """The stages from the one that was reached on; all of them at the start of a run.

        Raises ValueError if the stage that was reached is left out: the earlier ones are done, and after the last one
        the experts are quantized.
        """
        reached = self.place.stage
        if reached == NOWHERE.stage:
            return stages
        names = [stage.name for stage in stages]
        if reached not in names:
            raise ValueError(
                f"the run is in stage {reached}, which is not among {', '.join(names)}: leave it in, with --steps "
                f"{reached}=N for another number of steps, or give --begin-with instead of --resume"
            )
        return stages[names.index(reached) :]

    def save(self, folder: Path, model: DemoModel, beside: Mapping[str, Path] | None = None) -> None:
        """Writes the shards, and copies of the files `beside` under these names."""
        tensors = model.plain_tensors()
        for prefix, matrix in model.expert_matrices():
            tensors |= {f"{prefix}.weight": matrix} if self.experts is None else self.experts[prefix].named(prefix)
        save_shards(folder, tensors, self.place, beside or {})


def load_state(folder: Path, model: DemoModel) -> RunState:
    """Fills the model from shards; FileNotFoundError, KeyError or ValueError names what is missing."""
    tensors, place = load_shards(folder)
    load_plain(model, tensors)
    experts = collect(tensors)
    if experts:
        freeze(model, experts)
        return RunState(place, experts)
    model.set_expert_matrices({prefix: tensors[f"{prefix}.weight"] for prefix, _ in model.expert_matrices()})
    return RunState(place)


@torch.no_grad()
def load_plain(model: DemoModel, tensors: Mapping[str, Tensor]) -> None:
    """Every tensor but the routed experts' from those stored under its name; ValueError names what is missing."""
    wanted = model.plain_tensors()
    missing = sorted(wanted.keys() - tensors.keys())
    if missing:
        raise ValueError(f"the shards lack {', '.join(missing)}")
    for name, tensor in wanted.items():
        tensor.copy_(tensors[name])
