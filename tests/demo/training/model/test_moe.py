"""The mixture of experts against a loop over tokens: values, every gradient, and how many rows went where."""

import torch
import torch.nn.functional as F
from torch import Tensor

from support.demo_models import random_model, small_config
from twinspark_demo.training.model import DemoModel
from twinspark_demo.training.model.chains import Chains
from twinspark_demo.training.model.moe import mixture
from twinspark_demo.training.model.parameters import Weights
from twinspark_engine.model.weights.names import layer_prefix

CONFIG = small_config(n_routed_experts=5, num_experts_per_tok=2)
PREFIX = f"{layer_prefix(1)}mlp."


def _swiglu(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    limit = CONFIG.swiglu_limit
    return down @ (F.silu((gate @ x).clamp(max=limit)) * (up @ x).clamp(-limit, limit))


def _by_token(model: DemoModel, x: Tensor) -> tuple[Tensor, list[int]]:
    named = {name.removeprefix(PREFIX): p for name, p in [*model.named_parameters(), *model.named_buffers()]}
    shared = [named[f"shared_experts.{part}_proj.weight"] for part in ("gate", "up", "down")]
    rows, load = [], [0] * CONFIG.n_routed_experts
    for row in x:
        scores = torch.sigmoid(named["gate.weight"] @ row)
        ranked = (scores + named["gate.e_score_correction_bias"]).argsort(descending=True)
        chosen = ranked[: CONFIG.num_experts_per_tok].tolist()
        y = _swiglu(row, *shared)
        for expert in chosen:
            gate, up = named["experts.gate_up"][expert].chunk(2)
            share = CONFIG.routed_scaling_factor * scores[expert] / scores[chosen].sum()
            y = y + share * _swiglu(row, gate, up, named["experts.down"][expert])
            load[expert] += 1
        rows.append(y)
    return torch.stack(rows), load


def test_values_gradients_and_load_are_those_of_a_loop_over_tokens() -> None:
    model = random_model(CONFIG)
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(50, CONFIG.hidden_size, generator=generator).requires_grad_()
    weight = torch.randn(50, CONFIG.hidden_size, generator=generator)
    tensors: dict[str, Tensor] = dict(model.named_parameters()) | dict(model.named_buffers())
    y, load = mixture(x, Weights(tensors, torch.float32, PREFIX), CONFIG, Chains(), noise=0.0)
    expected, counts = _by_token(model, x)
    # Both in fp32, with sums in another order.
    assert torch.allclose(y, expected, rtol=1e-4, atol=1e-4)
    assert load.tolist() == counts
    assert len(set(counts)) > 2
    parameters = [x, *(p for name, p in model.named_parameters() if name.startswith(PREFIX))]
    ours = torch.autograd.grad((y * weight).sum(), parameters)
    theirs = torch.autograd.grad((expected * weight).sum(), parameters)
    for mine, other in zip(ours, theirs, strict=True):
        assert (mine - other).abs().max() < 1e-4 * other.abs().max()


def test_an_expert_without_rows_has_a_gradient_of_zero() -> None:
    model = random_model(CONFIG)
    tensors: dict[str, Tensor] = dict(model.named_parameters()) | dict(model.named_buffers())
    tensors[f"{PREFIX}gate.e_score_correction_bias"][3] = -100.0
    y, load = mixture(
        torch.randn(40, CONFIG.hidden_size), Weights(tensors, torch.float32, PREFIX), CONFIG, Chains(), 0.0
    )
    y.sum().backward()
    gradient = tensors[f"{PREFIX}experts.down"].grad
    assert load[3] == 0
    assert gradient is not None
    assert torch.equal(gradient[3], torch.zeros_like(gradient[3]))
