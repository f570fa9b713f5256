"""Start-up check that this machine's CPU keeps the row invariance which the reference ops rely on.

BLAS and vector libraries choose code by processor, so what held where the tests ran is tried again where the model
runs, for the shapes in use. The engine calls `check_row_invariance` once at load; it takes well under a second.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch

from twinspark_kernels.hyper_connection.reference import STREAMS, sinkhorn
from twinspark_kernels.layer_norm import layer_norm
from twinspark_kernels.linear import head_linear, linear
from twinspark_kernels.rms_norm import rms_norm
from twinspark_kernels.row_class import RowClass
from twinspark_kernels.sigmoid import silu

RowOp = Callable[[torch.Tensor], torch.Tensor]


class RowInvarianceError(RuntimeError):
    """An op gives a row other bits in another batch on this machine: nothing that it computes may be served."""


@dataclass(frozen=True, slots=True)
class OpShapes:
    """The shapes that a loaded model uses: its matrices, and the widths that it norms or activates."""

    linear: frozenset[tuple[int, int]] = frozenset()  # (out, in)
    head_linear: frozenset[tuple[int, int, int]] = frozenset()  # (heads, in, out)
    widths: frozenset[int] = frozenset()


def check_row_invariance(shapes: OpShapes) -> None:
    """Try every op and shape with the threads that torch has now; raise RowInvarianceError naming the first that fails.

    Uses random fp32 weights of the given shapes from a generator of its own.
    """
    generator = torch.Generator().manual_seed(1)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    for row_class in RowClass:
        rows = 2 * row_class.tile_rows + 3
        for out, width in sorted(shapes.linear):
            weight = draw(out, width)
            check_rows(
                f"linear {out} x {width}, {row_class.name}",
                partial(linear, weight=weight, row_class=row_class),
                draw(rows, width),
            )
        for heads, width, out in sorted(shapes.head_linear):
            weight = draw(heads, width, out)
            check_rows(
                f"head_linear {heads} x {width} x {out}, {row_class.name}",
                partial(head_linear, weight=weight, row_class=row_class),
                draw(rows, heads, width),
            )
    for width in sorted(shapes.widths):
        weight = draw(width)
        check_rows(f"rms_norm {width}", partial(rms_norm, weight=weight, eps=1e-5), draw(37, width))
        check_rows(f"layer_norm {width}", partial(layer_norm, weight=weight, bias=weight, eps=1e-6), draw(37, width))
        check_rows(f"silu {width}", silu, draw(37, width))
        check_rows(f"softmax {width}", partial(torch.softmax, dim=-1), draw(37, width))
    check_rows("sinkhorn", lambda x: sinkhorn(x.exp(), 1e-6, 20), draw(37, STREAMS, STREAMS))


def check_rows(name: str, op: RowOp, x: torch.Tensor) -> None:
    """Compare `op(x)` with op on one thread, on single rows, on a prefix and on the rows in reverse.

    `op` maps rows to rows. Raises RowInvarianceError naming `name`, the row and the number of threads.
    """
    whole, rows = op(x), len(x)
    _check_one_thread(name, op, x, whole)
    singles = [torch.tensor([row]) for row in (0, 1, rows // 2, rows - 1)]
    for picked in (*singles, torch.arange(rows // 2 + 1), torch.arange(rows - 1, -1, -1)):
        same = (op(x[picked]) == whole[picked]).flatten(1).all(1)
        if not same.all():
            row = int(picked[int(same.int().argmin())])
            raise RowInvarianceError(
                f"{name}: row {row} of {rows} has other bits in a batch of {len(picked)} on this CPU "
                f"({torch.get_num_threads()} threads, {torch.backends.cpu.get_cpu_capability()}); "
                "replies would depend on who else is served. Try one thread, or another torch build"
            )


def _check_one_thread(name: str, op: RowOp, x: torch.Tensor, whole: torch.Tensor) -> None:
    count = torch.get_num_threads()
    if count == 1:
        return
    torch.set_num_threads(1)
    try:
        same = bool((op(x) == whole).all())
    finally:
        torch.set_num_threads(count)
    if not same:
        raise RowInvarianceError(
            f"{name}: one thread gives other bits than {count} on this CPU; replies would depend on the number of "
            "threads. Try one thread, or another torch build"
        )
