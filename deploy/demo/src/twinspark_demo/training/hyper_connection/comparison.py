"""Compares two implementations on drawn inputs: outputs and all gradients of a site (hc_pre, then hc_post).

Errors are relative: norm of the difference over the norm of the expected.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

PARAMETERS = ("streams", "y", "fn", "base", "scale")
Tensors = dict[str, torch.Tensor]
Pre = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], tuple[torch.Tensor, ...]]
Post = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


@dataclass(frozen=True, slots=True)
class Site:
    """Leaf tensors of a site, and the directions along which the gradients of its four outputs are taken."""

    leaves: Tensors
    directions: Tensors

    def to_float64(self) -> "Site":
        """The same site in fp64 on the CPU; fn rounded as streams of the dtype see it."""
        leaves = {name: tensor.detach().cpu().double() for name, tensor in self.leaves.items()}
        leaves["fn"] = self.leaves["fn"].detach().to(self.leaves["streams"].dtype).cpu().double()
        directions = {name: tensor.cpu().double() for name, tensor in self.directions.items()}
        return Site({name: tensor.requires_grad_() for name, tensor in leaves.items()}, directions)


def draw_site(rows: int, width: int, dtype: torch.dtype, device: str = "cpu", seed: int = 0) -> Site:
    """A site with sharp coefficients: comb far from uniform, so that every Sinkhorn step counts."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    leaves = {
        "streams": normal(rows, 4, width).to(dtype),
        "y": normal(rows, width).to(dtype),
        "fn": normal(24, 4 * width) * (4 * width) ** -0.5,
        "base": normal(24),
        "scale": torch.tensor([1.1, 0.9, 2.0]),
    }
    directions = {
        "u": normal(rows, width).to(dtype),
        "post": normal(rows, 4),
        "comb": normal(rows, 4, 4),
        "out": normal(rows, 4, width).to(dtype),
    }
    on_device = {name: tensor.to(device).requires_grad_() for name, tensor in leaves.items()}
    return Site(on_device, {name: tensor.to(device) for name, tensor in directions.items()})


def outputs_and_gradients(site: Site, pre: Pre, post: Post) -> Tensors:
    """u, post, comb, out of the site, and d_<leaf> of their sum along the directions."""
    leaves = site.leaves
    u, gate, comb = pre(leaves["streams"], leaves["fn"], leaves["base"], leaves["scale"])
    out = post(leaves["streams"], leaves["y"], gate, comb)
    results = {"u": u, "post": gate, "comb": comb, "out": out}
    names = tuple(results)
    gradients = torch.autograd.grad(
        [results[name] for name in names],
        [leaves[name] for name in PARAMETERS],
        [site.directions[name] for name in names],
    )
    return {**results, **{f"d_{name}": gradient for name, gradient in zip(PARAMETERS, gradients, strict=True)}}


def relative_errors(actual: Mapping[str, torch.Tensor], expected: Mapping[str, torch.Tensor]) -> dict[str, float]:
    """Relative error of each tensor."""
    errors = {}
    for name, wanted in expected.items():
        difference = actual[name].detach().cpu().double() - wanted.detach()
        errors[name] = float(difference.norm() / wanted.detach().norm())
    return errors
