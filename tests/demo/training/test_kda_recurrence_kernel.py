"""The Triton kernels in Triton's interpreter against autograd of the reference in float64.

The interpreter must be chosen before triton is imported: this file is also the program of a process of its own, which
prints the relative errors of all cases.
"""

import json
from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F

NAMES = ("o", "q", "k", "v", "log_decay", "beta")


@dataclass(frozen=True, slots=True)
class Case:
    """Shape, tokens where documents of the last row start, log decays between lowest and highest."""

    starts: tuple[int, ...]
    lowest: float
    highest: float = 0.0
    K: int = 16
    V: int = 16
    B: int = 1
    H: int = 1
    T: int = 40
    dtype: torch.dtype = torch.float32
    limit: float = 1e-4  # of fp32: the gradient of log_decay is a sum that cancels


CASES = {
    "two documents in the last of two rows": Case((0, 13), -1.0, B=2, H=2, T=24),
    "starts at and beside the border of a chunk": Case((15, 16, 17, 38), -0.1),
    "only starts": Case(tuple(range(20)), -1.0, T=20),
    "no decay, two blocks of columns": Case((), 0.0, V=32, T=20),
    "strong decay everywhere": Case((21,), -5.0, -5.0, K=32, T=33),
    "decay from none to the strongest": Case((), -10.0, K=32, T=33),
    "bf16": Case((21,), -1.0, T=33, dtype=torch.bfloat16, limit=1e-2),  # outputs round by 4e-3
}


def run_case(case: Case) -> dict[str, float]:
    """Relative errors of the output and the five gradients."""
    from twinspark_demo.training.kda_recurrence import function, reference

    generator = torch.Generator().manual_seed(7)
    shape = (case.B, case.T, case.H)
    q, k = (F.normalize(torch.randn(*shape, case.K, generator=generator), dim=-1) for _ in range(2))
    v, d_o = (torch.randn(*shape, case.V, generator=generator).to(case.dtype) for _ in range(2))
    log_decay = case.lowest + (case.highest - case.lowest) * torch.rand(*shape, case.K, generator=generator)
    starts = torch.zeros(case.B, case.T, dtype=torch.bool)
    starts[-1, list(case.starts)] = True
    rows = [q.to(case.dtype), k.to(case.dtype), v, log_decay, torch.rand(*shape, generator=generator)]
    exact = [x.double().requires_grad_() for x in rows]
    rows = [x.requires_grad_() for x in rows]
    o = function.kda_recurrence(*[*rows, starts])  # type: ignore[arg-type]
    exact_o = reference.kda_recurrence(*[*exact, starts])
    found = [o.detach(), *torch.autograd.grad(o, rows, d_o)]
    wanted = [exact_o.detach(), *torch.autograd.grad(exact_o, exact, d_o.double())]
    return {name: relative_error(x, y) for name, x, y in zip(NAMES, found, wanted, strict=True)}


def relative_error(found: torch.Tensor, wanted: torch.Tensor) -> float:
    """In the Euclidean norm; of a gradient that is zero everywhere, the largest value found."""
    scale = float(wanted.norm())
    return float((found.double() - wanted).norm()) / scale if scale else float(found.abs().max())


@pytest.fixture(scope="module")
def errors() -> dict[str, dict[str, float]]:
    """By case, then by tensor."""
    # Imported here: the child that runs this file as a program has no tests on its path.
    from support.triton_interpreter import errors_printed_by

    return errors_printed_by(__file__)


@pytest.mark.parametrize("name", CASES)
def test_the_kernels_give_the_outputs_and_gradients_of_the_reference(
    name: str, errors: dict[str, dict[str, float]]
) -> None:
    assert {what: error for what, error in errors[name].items() if not error <= CASES[name].limit} == {}


if __name__ == "__main__":
    print(json.dumps({name: run_case(case) for name, case in CASES.items()}))
