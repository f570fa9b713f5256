"""Flat gradients: the same update as AdamW's on each parameter, clipped by the norm of all."""

import torch
from torch import nn

from twinspark_demo.training.optimizer import BETAS, CLIP_NORM, WEIGHT_DECAY, FlatAdamW


def build_parameters() -> dict[str, nn.Parameter]:
    generator = torch.Generator().manual_seed(0)
    shapes = {"a.weight": (3, 5), "b.indexer.wk.weight": (4, 2), "norm.weight": (5,), "frozen": (2, 2)}
    parameters = {name: nn.Parameter(torch.randn(shape, generator=generator)) for name, shape in shapes.items()}
    parameters["frozen"].requires_grad_(False)
    return parameters


def lose(parameters: dict[str, nn.Parameter]) -> torch.Tensor:
    return sum((parameter.square().sum() * 3 for parameter in parameters.values()), start=torch.zeros(()))


def test_updates_are_those_of_adamw_on_clipped_gradients() -> None:
    ours, theirs = build_parameters(), build_parameters()
    optimizer = FlatAdamW(ours)
    decayed = {"a.weight": WEIGHT_DECAY, "b.indexer.wk.weight": WEIGHT_DECAY, "norm.weight": 0.0}
    rates = {"a.weight": 0.1, "b.indexer.wk.weight": 0.01, "norm.weight": 0.1}
    groups = [{"params": [theirs[name]], "lr": rates[name], "weight_decay": decay} for name, decay in decayed.items()]
    reference = torch.optim.AdamW(groups, betas=BETAS)
    for _ in range(4):
        optimizer.zero()
        lose(ours).backward()
        optimizer.set_rates(0.1, 0.01)
        optimizer.update()
        reference.zero_grad()
        lose(theirs).backward()
        norm = nn.utils.clip_grad_norm_([theirs[name] for name in decayed], CLIP_NORM)
        reference.step()
        torch.testing.assert_close(optimizer.norm, norm)
    for name in ours:
        torch.testing.assert_close(ours[name], theirs[name])


def test_holding_changes_no_parameter_and_no_rate() -> None:
    parameters = build_parameters()
    optimizer = FlatAdamW(parameters)
    optimizer.set_rates(0.1, 0.1)
    lose(parameters).backward()
    before = {name: parameter.detach().clone() for name, parameter in parameters.items()}
    optimizer.hold()
    assert all(torch.equal(before[name], parameter) for name, parameter in parameters.items())
    optimizer.update()
    assert not torch.equal(before["a.weight"], parameters["a.weight"])
