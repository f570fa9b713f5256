"""Transformers' `glm5_next` as the judge of our forward: stable ties, captured selections.

Only tests import this. Nothing of Transformers is copied: the published class runs as it is, on its plain PyTorch path,
except that `topk` is answered by a stable descending sort (ties to the lower index), which `topk` does not promise.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from transformers import Glm5NextForConditionalGeneration
from transformers.models.glm5_next import modeling_glm5_next as hf

MIN_CLAMPED_FRACTION = 0.01


@dataclass(slots=True)
class Selection:
    """What one `topk` of the reference chose for each row, and the scores that it chose from."""

    scores: Tensor  # [T, n]
    chosen: Tensor  # [T, k], best first

    def gap_at_cut(self) -> Tensor:
        """[T] last chosen minus first refused score, over the row's largest absolute score; inf if none was refused."""
        ordered = self.scores.sort(dim=-1, descending=True, stable=True).values
        width = self.chosen.shape[-1]
        if width >= ordered.shape[-1]:
            return torch.full(ordered.shape[:1], torch.inf)
        refused = torch.finfo(ordered.dtype).min
        largest = ordered.where(ordered > refused, torch.zeros(())).abs().amax(dim=-1)
        gap = (ordered[:, width - 1] - ordered[:, width]) / largest.clamp(min=torch.finfo(ordered.dtype).tiny)
        return gap.where(ordered[:, width] > refused, torch.inf)


@dataclass(slots=True)
class HfRun:
    """Logits of all positions, and the selections by layer index."""

    ids: list[int]
    logits: Tensor  # [T, vocab]
    pools: dict[int, Selection] = field(default_factory=dict)
    experts: dict[int, Selection] = field(default_factory=dict)
    clamped: dict[str, float] = field(default_factory=dict)


class StableTopk(TorchFunctionMode):
    """Answers every `topk` by a stable descending sort, and shows scores and choice to `seen`."""

    def __init__(self, seen: Callable[[Tensor, Tensor], None]) -> None:
        super().__init__()
        self._seen = seen

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        arguments = dict(kwargs or {})
        if func not in (torch.topk, torch.Tensor.topk):
            return func(*args, **arguments)
        scores = args[0]
        width = args[1] if len(args) > 1 else arguments["k"]
        ordered = torch.sort(scores, dim=arguments.get("dim", -1), descending=True, stable=True)
        chosen = ordered.indices[..., :width]
        self._seen(scores, chosen)
        return torch.return_types.topk((ordered.values[..., :width], chosen))


def run_reference(model: Glm5NextForConditionalGeneration, ids: list[int]) -> HfRun:
    """One whole forward of the reference without a cache: every row is a prompt row."""
    run = HfRun(ids, torch.empty(0))
    current: list[tuple[str, int]] = []

    def seen(scores: Tensor, chosen: Tensor) -> None:
        if not current:
            return
        kind, layer = current[-1]
        selection = Selection(scores.flatten(0, -2), chosen.flatten(0, -2))
        # The router asks three times (groups twice): the last answer is the choice of experts.
        (run.pools if kind == "pools" else run.experts)[layer] = selection

    with _marked(model, current), _clamps_counted(model, run.clamped), torch.no_grad(), StableTopk(seen):
        run.logits = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0]
    return run


@contextmanager
def _marked(model: nn.Module, current: list[tuple[str, int]]) -> Iterator[None]:
    """While open, `current` names the selecting module that runs."""
    handles = []
    for index, layer in enumerate(model.model.language_model.layers):  # type: ignore[union-attr, arg-type]
        for kind, module in (
            ("pools", getattr(layer.self_attn, "indexer", None)),
            ("experts", getattr(layer.mlp, "gate", None)),
        ):
            if module is None:
                continue
            mark = (kind, index)
            handles.append(module.register_forward_pre_hook(lambda *_, mark=mark: current.append(mark)))
            handles.append(module.register_forward_hook(lambda *_: current.clear()))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def _clamps_counted(model: nn.Module, fractions: dict[str, float]) -> Iterator[None]:
    """While open, records for each MLP the share of gate entries over the limit and of up entries outside of it."""
    handles = []

    def count(name: str, limit: float, gate: Tensor, up: Tensor) -> None:
        fractions[f"{name}.gate"] = (gate > limit).float().mean().item()
        fractions[f"{name}.up"] = (up.abs() > limit).float().mean().item()

    def mlp_hook(module: Any, args: Any, name: str) -> None:
        count(name, module.swiglu_limit, module.gate_proj(args[0]), module.up_proj(args[0]))

    def experts_hook(module: Any, args: Any, name: str) -> None:
        count(name, module.swiglu_limit, *torch.einsum("td,eod->teo", args[0], module.gate_up_proj).chunk(2, dim=-1))

    for name, module in model.named_modules():
        for kind, hook in ((hf.Glm5NextTextMLP, mlp_hook), (hf.Glm5NextTextExperts, experts_hook)):
            if isinstance(module, kind):
                handles.append(module.register_forward_pre_hook(partial(hook, name=name)))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def assert_clamps_act(run: HfRun) -> None:
    """Both clamps act in at least 1% of the entries of every MLP, so a wrong one cannot hide."""
    assert run.clamped
    for name, fraction in run.clamped.items():
        assert fraction >= MIN_CLAMPED_FRACTION, f"{name}: only {fraction:.2%} of the entries are clamped"
