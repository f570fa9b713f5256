"""Property check of row invariance: the bits of a row depend on that row alone.

`check_row_invariance(op, make_inputs)` runs `op` on row-aligned inputs at several row counts, each row alone,
permuted, beside poisoned neighbours, and with one and two threads, and compares bits. `check_row_counts` does less.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch

ROW_COUNTS = (1, 2, 15, 16, 17, 37)
WIDTHS = (4, 24, 100, 1000, 64, 256)
THREAD_COUNTS = (1, 2)

Rows = tuple[torch.Tensor, ...]
RowOp = Callable[..., torch.Tensor | Sequence[torch.Tensor]]


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Run the body with `count` torch threads inside an op."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def product_by_row_count(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """x @ weight.T, whose sums are made in two parts for a single row: what a BLAS may do, here on every machine."""
    if len(x) > 1:
        return x @ weight.T
    cut = x.shape[1] // 3  # a power of two is where a BLAS may cut by itself
    return x[:, :cut] @ weight[:, :cut].T + x[:, cut:] @ weight[:, cut:].T


def same_bits(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Equal shape, dtype and values; NaN equals NaN, and -0.0 differs from 0.0."""
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    return torch.equal(_bits(left), _bits(right))


def check_row_invariance(
    op: RowOp,
    make_inputs: Callable[[int], Rows],
    *,
    row_counts: Sequence[int] = ROW_COUNTS,
    poison: bool = True,
) -> None:
    """Assert that every output row of `op(*inputs)` has the same bits however its batch is made.

    `make_inputs(rows)` returns tensors whose axis 0 is the row; `op` takes them and returns one or several tensors
    whose axis 0 is the row. `op` must not keep state between calls. With `poison`, the other rows of floating
    inputs are also replaced by NaN. Raises AssertionError that names the row, the row count and the variant.
    """
    inputs = make_inputs(max(row_counts))
    with threads(1):
        expected = _run(op, inputs)
    assert all(len(output) == len(inputs[0]) for output in expected), "axis 0 of every output must be the row"
    for count in THREAD_COUNTS:
        with threads(count):
            for picked, variant in _row_choices(row_counts, len(inputs[0])):
                outputs = _run(op, tuple(x[picked] for x in inputs))
                _compare(outputs, expected, picked, f"{variant}, {count} threads")
            if poison:
                _check_poisoned(op, inputs, expected, row_counts, f"{count} threads")


def check_row_counts(op: RowOp, make_inputs: Callable[[int], Rows]) -> None:
    """Assert that the first 1, 2, 15, 16, 17 and 37 rows have the bits of each row alone, with one and two threads.

    The part of `check_row_invariance` for ops of many parallel regions: two threads wait long for each other in every
    region where other processes use the CPUs, so here few calls have two.
    """
    inputs = make_inputs(max(ROW_COUNTS))
    with threads(1):
        alone = [_run(op, tuple(x[row : row + 1] for x in inputs)) for row in range(max(ROW_COUNTS))]
    expected = [torch.cat(parts) for parts in zip(*alone, strict=True)]
    for count in THREAD_COUNTS:
        with threads(count):
            for rows in ROW_COUNTS:
                outputs = _run(op, tuple(x[:rows] for x in inputs))
                _compare(outputs, expected, torch.arange(rows), f"first {rows} rows, {count} threads")


def _row_choices(row_counts: Sequence[int], total: int) -> Iterator[tuple[torch.Tensor, str]]:
    """Row index lists: rows alone (the first 37 and the last), prefixes, suffixes and permutations of each count."""
    for row in {*range(min(total, 37)), total - 1}:
        yield torch.tensor([row]), "alone"
    generator = torch.Generator().manual_seed(7)
    for count in row_counts:
        yield torch.arange(count), f"first {count} rows"
        yield torch.arange(total - count, total), f"last {count} rows"
        yield torch.randperm(total, generator=generator)[:count], f"permuted {count} rows"


def _check_poisoned(
    op: RowOp, inputs: Rows, expected: list[torch.Tensor], row_counts: Sequence[int], suffix: str
) -> None:
    """Keep one row of a batch and fill the floating values of all others with NaN."""
    for count in row_counts:
        for row in {0, count // 2, count - 1}:
            poisoned = tuple(_poison_others(x[:count], row) for x in inputs)
            outputs = [output[row : row + 1] for output in _run(op, poisoned)]
            _compare(outputs, expected, torch.tensor([row]), f"beside NaN in {count} rows, {suffix}")


def _poison_others(x: torch.Tensor, row: int) -> torch.Tensor:
    if not x.is_floating_point():
        return x
    poisoned = torch.full_like(x, float("nan"))
    poisoned[row] = x[row]
    return poisoned


def _run(op: RowOp, inputs: Rows) -> list[torch.Tensor]:
    result = op(*(x.clone() for x in inputs))
    return [result] if isinstance(result, torch.Tensor) else list(result)


def _compare(outputs: list[torch.Tensor], expected: list[torch.Tensor], picked: torch.Tensor, variant: str) -> None:
    for index, (output, whole) in enumerate(zip(outputs, expected, strict=True)):
        for place, row in enumerate(picked.tolist()):
            if not same_bits(output[place], whole[row]):
                difference = (output[place].double() - whole[row].double()).abs().max().item()
                raise AssertionError(
                    f"output {index}, row {row} at place {place} ({variant}): bits differ, largest by {difference:.3g}"
                )


def _bits(x: torch.Tensor) -> torch.Tensor:
    views = {2: torch.int16, 4: torch.int32, 8: torch.int64}
    return x.contiguous().view(views[x.element_size()]) if x.is_floating_point() else x
