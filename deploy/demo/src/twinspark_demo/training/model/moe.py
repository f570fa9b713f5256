"""MLPs: the dense one, and the mixture of routed experts with its shared expert."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from twinspark_demo.training.model.chains import Chains
from twinspark_demo.training.model.parameters import BIAS_SUFFIX, Weights
from twinspark_engine.model.config import ModelConfig

WEIGHT_EPS = 1e-20


def swiglu(x: Tensor, w: Weights, config: ModelConfig, chains: Chains) -> Tensor:
    """x [N, D] -> [N, D]: a dense MLP with gate_proj, up_proj and down_proj below w."""
    gate_up = F.linear(x, w("gate_proj.weight", "up_proj.weight"))
    return F.linear(chains.clamped_swiglu(gate_up, config.swiglu_limit), w("down_proj.weight"))


def mixture(x: Tensor, w: Weights, config: ModelConfig, chains: Chains, noise: float) -> tuple[Tensor, Tensor]:
    """x [N, D] -> [N, D] and fp32 [E], the rows sent to each expert. noise: relative, on the experts' weights."""
    slots = config.num_experts_per_tok
    chosen, weights = route(x, w.under("gate."), config)
    experts = chosen.flatten()
    order = torch.argsort(experts.to(torch.int16), stable=True)  # the fewer bits, the fewer passes of the sort
    back = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device))
    load = (experts[:, None] == torch.arange(config.n_routed_experts, device=x.device)).sum(0)
    offsets = load.cumsum(0).to(torch.int32)
    gate_up = F.grouped_mm(
        _Moved.apply(x, order // slots, back, slots), _noisy(w, "gate_up", 2, noise).transpose(1, 2), offs=offsets
    )
    y = F.grouped_mm(
        chains.clamped_swiglu(gate_up, config.swiglu_limit), _noisy(w, "down", 1, noise).transpose(1, 2), offs=offsets
    )
    routed = _Moved.apply(y, back, order, 1).unflatten(0, (-1, slots))
    shared = swiglu(x, w.under("shared_experts."), config, chains)
    return chains.combine_experts(routed, weights, shared), load.float()


def route(x: Tensor, w: Weights, config: ModelConfig) -> tuple[Tensor, Tensor]:
    """x [N, D] -> chosen experts int64 [N, k] and their weights fp32 [N, k]; the bias selects and does not weigh."""
    scores = torch.sigmoid(F.linear(x.float(), w.master("weight")))
    chosen = torch.topk((scores + w.master(BIAS_SUFFIX)).detach(), config.num_experts_per_tok).indices
    weights = scores.gather(1, chosen)
    return chosen, weights / (weights.sum(-1, keepdim=True) + WEIGHT_EPS) * config.routed_scaling_factor


def _noisy(w: Weights, part: str, matrices: int, noise: float) -> Tensor:
    """Stacked weights [E, out, in] in the compute dtype; `matrices` lie below each other in `out`."""
    if noise == 0:
        return w(f"experts.{part}")
    master = w.master(f"experts.{part}")
    split = master.unflatten(1, (matrices, -1))
    rms = split.detach().square().mean((-2, -1), keepdim=True).sqrt()
    noisy: Tensor = split + noise * rms * torch.randn_like(split)
    return noisy.flatten(1, 2).to(w.dtype)


class _Moved(torch.autograd.Function):
    """Rows of [N, D] in another order, each `copies` times; the gradient is gathered too, never added with atomics."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, source: Tensor, back: Tensor, copies: int) -> Tensor:
        """source [M]: row that each output row comes from; back [M]: output row of copy c of row n at n copies + c."""
        ctx.save_for_backward(back)
        ctx.copies = copies
        return rows.index_select(0, source)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        """Sum over each row's copies."""
        (back,) = ctx.saved_tensors
        gathered = gradient.index_select(0, back)
        if ctx.copies > 1:
            gathered = gathered.unflatten(0, (-1, ctx.copies)).sum(1)
        return gathered, None, None, None
