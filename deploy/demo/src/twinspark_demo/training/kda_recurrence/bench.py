"""Check and time the Triton kernels on a GPU: `python -m twinspark_demo.training.kda_recurrence.bench`."""

from collections.abc import Callable
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from twinspark_demo.training.kda_recurrence import function, reference
from twinspark_demo.training.kda_recurrence.function import LAUNCHES, Launch

H, K, V = 4, 64, 64
SHAPES = ((72, 1024), (8, 9216))
NAMES = ("o", "dq", "dk", "dv", "dg", "dbeta")
DEFAULT = LAUNCHES[torch.bfloat16]
VARIANTS = {
    "default": DEFAULT,
    "2 stages": replace(DEFAULT, stages=2, prepare_warps=1),
    "scan 16/2": replace(DEFAULT, scan_warps=2, gradient_block=32),
    "scan 32/4": replace(DEFAULT, block=32, scan_warps=4, prepare_warps=4),
    "scan 64/4": replace(DEFAULT, block=64, scan_warps=4, stages=2, gradient_warps=8),
    "tf32x3": LAUNCHES[torch.float32],
    "tf32x3 32/4": replace(LAUNCHES[torch.float32], block=32, scan_warps=4, prepare_warps=4, gradient_warps=8),
}


def make_rows(B: int, T: int, dtype: torch.dtype) -> tuple[Tensor, ...]:
    """Inputs of a plausible layer: most channels decay slowly, a document starts every 300 tokens or so."""
    generator = torch.Generator("cuda").manual_seed(1)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, device="cuda", generator=generator)

    q = F.normalize(normal(B, T, H, K), dim=-1) * K**-0.5
    k = F.normalize(normal(B, T, H, K), dim=-1)
    log_decay = -5 * torch.sigmoid(3 * normal(B, T, H, K) - 3)
    starts = torch.rand(B, T, device="cuda", generator=generator) < 1 / 300
    beta = torch.sigmoid(normal(B, T, H))
    return q.to(dtype), k.to(dtype), normal(B, T, H, V).to(dtype), log_decay, beta, starts.view(torch.uint8)


def results(op: Callable[..., Tensor], rows: tuple[Tensor, ...], d_o: Tensor, *more: Launch) -> list[Tensor]:
    """o and the gradients of the five inputs."""
    leaves = [x.detach().requires_grad_() for x in rows[:5]]
    o = op(*leaves, rows[5], *more)
    return [o.detach(), *torch.autograd.grad(o, leaves, d_o)]


def errors(found: list[Tensor], wanted: list[Tensor]) -> str:
    """Relative errors in the Euclidean norm."""
    pairs = zip(NAMES, found, wanted, strict=True)
    return "  ".join(f"{name} {float((x.double() - y).norm() / y.norm()):.1e}" for name, x, y in pairs)


def check() -> None:
    """Every variant against float64 of the same rounded inputs."""
    for dtype in (torch.float32, torch.bfloat16):
        rows = make_rows(2, 333, dtype)
        d_o = torch.randn(rows[2].shape, device="cuda").to(dtype)
        exact = [x.double() for x in rows[:5]]
        wanted = results(reference.kda_recurrence, (*exact, rows[5]), d_o.double())
        for name, launch in VARIANTS.items():
            print(f"{dtype} {name:12} {errors(results(function.kda_recurrence, rows, d_o, launch), wanted)}")
        print(f"captured in a graph: {'equal' if captured_equals(rows, d_o) else 'DIFFERENT'}")


def captured_equals(rows: tuple[Tensor, ...], d_o: Tensor) -> bool:
    """Whether forward and backward replayed from a CUDA graph give the bits of an ordinary call."""
    wanted = results(function.kda_recurrence, rows, d_o)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = results(function.kda_recurrence, rows, d_o)
    graph.replay()
    return all(torch.equal(x, y) for x, y in zip(found, wanted, strict=True))


def milliseconds(work: Callable[[], object], rounds: int = 10) -> float:
    """Mean time of one call on the GPU."""
    for _ in range(3):
        work()
    first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    first.record()
    for _ in range(rounds):
        work()
    last.record()
    torch.cuda.synchronize()
    return float(first.elapsed_time(last)) / rounds


def time_variant(rows: tuple[Tensor, ...], launch: Launch) -> list[float]:
    """ms of prepare, scan, the whole forward, scan_back, gradients, the whole backward."""
    _, saved = function.forward(rows, launch)
    d_o = torch.randn_like(rows[2])
    behind = function.scan_back(rows, saved, d_o, launch)
    prepare = milliseconds(lambda: function.prepare(rows, saved, launch))
    scan = milliseconds(lambda: function.scan(rows, saved, launch))
    back = milliseconds(lambda: function.scan_back(rows, saved, d_o, launch))
    inside = milliseconds(lambda: function.gradients(rows, saved, d_o, behind, launch))
    return [prepare, scan, prepare + scan, back, inside, back + inside]


def main() -> None:
    """Correctness first, then times in ms."""
    check()
    for B, T in SHAPES:
        rows = make_rows(B, T, torch.bfloat16)
        print(f"\nB {B}, T {T}: prepare + scan = forward; scan_back + gradients = backward [ms]")
        for name, launch in VARIANTS.items():
            print(f"{name:12} " + " ".join(f"{ms:8.3f}" for ms in time_variant(rows, launch)))


if __name__ == "__main__":
    main()
