"""AdamW over flat gradients: one buffer to zero, to average over processes and to clip."""

from collections.abc import Mapping

import torch
from torch import nn

WEIGHT_DECAY = 0.05
BETAS = (0.9, 0.95)
CLIP_NORM = 1.0


class FlatAdamW:
    """The optimizer of one stage. Every method but set_rates can be captured in a CUDA graph.

    Gradients are views of one fp32 buffer, which backward adds into.
    """

    def __init__(self, parameters: Mapping[str, nn.Parameter]) -> None:
        trained = {name: parameter for name, parameter in parameters.items() if parameter.requires_grad}
        device = next(iter(trained.values())).device
        self.gradients = torch.zeros(sum(parameter.numel() for parameter in trained.values()), device=device)
        start = 0
        for parameter in trained.values():
            parameter.grad = self.gradients[start : start + parameter.numel()].view_as(parameter)
            start += parameter.numel()
        self._rate, self._indexer_rate = (torch.zeros((), device=device) for _ in range(2))
        self.norm = torch.zeros((), device=device)
        on_gpu = device.type == "cuda"
        self._adamw = torch.optim.AdamW(self._groups(trained), betas=BETAS, fused=on_gpu, capturable=on_gpu)

    def _groups(self, trained: Mapping[str, nn.Parameter]) -> list[dict[str, object]]:
        def is_matrix(name: str, parameter: nn.Parameter) -> bool:
            return parameter.dim() >= 2 and "conv1d" not in name and "_ape" not in name

        groups: list[dict[str, object]] = []
        for rate, in_indexer in ((self._rate, False), (self._indexer_rate, True)):
            named = [(name, p) for name, p in trained.items() if (".indexer." in name) == in_indexer]
            matrices = [p for name, p in named if is_matrix(name, p)]
            others = [p for name, p in named if not is_matrix(name, p)]
            groups += [{"params": matrices, "lr": rate, "weight_decay": WEIGHT_DECAY}] if matrices else []
            groups += [{"params": others, "lr": rate, "weight_decay": 0.0}] if others else []
        return groups

    def zero(self) -> None:
        """Every gradient becomes 0."""
        self.gradients.zero_()

    def set_rates(self, rate: float, indexer_rate: float) -> None:
        """Learning rates of the next update."""
        self._rate.fill_(rate)
        self._indexer_rate.fill_(indexer_rate)

    def hold(self) -> None:
        """One update that changes nothing but AdamW's own state, which it makes; the rates stay."""
        rates = self._rate.clone(), self._indexer_rate.clone()
        self.set_rates(0.0, 0.0)
        self.update()
        self._rate.copy_(rates[0])
        self._indexer_rate.copy_(rates[1])

    @torch.no_grad()
    def update(self) -> None:
        """Clips the gradients by their norm (kept in `norm`), then one AdamW step."""
        self.norm.copy_(torch.linalg.vector_norm(self.gradients))
        self.gradients.mul_((CLIP_NORM / (self.norm + 1e-6)).clamp(max=1.0))
        self._adamw.step()
