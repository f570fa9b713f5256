"""CheckpointReader: reads planned parameters, only the rows and columns that are asked for, and reports progress."""

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from twinspark_engine.model.checkpoint_error import CheckpointError, CheckpointReason
from twinspark_engine.model.weights.catalog import Entry
from twinspark_engine.model.weights.expect import FP8_DTYPE, SCALE_SUFFIX
from twinspark_engine.model.weights.fp8 import dequantize
from twinspark_engine.model.weights.plan import LoadPlan

Progress = Callable[[int, int], None]
"""Called with (bytes done, bytes total) after each parameter; both count parameters whole, whatever part was read."""

WHOLE = slice(None)


def no_progress(done: int, total: int) -> None:
    """A Progress that reports to nobody."""


class CheckpointReader:
    """Open files of one load. Used by one thread, as a context manager; each parameter is read once."""

    def __init__(self, plan: LoadPlan, progress: Progress = no_progress) -> None:
        self._entries = plan.entries
        self._progress = progress
        self._total = plan.num_bytes
        self._done = 0
        self._files: dict[Path, Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._files.clear()

    def holds(self, name: str) -> bool:
        """Whether the plan has a parameter of that name."""
        return name in self._entries

    def read(self, name: str, dtype: torch.dtype, rows: slice = WHOLE, columns: slice = WHOLE) -> Tensor:
        """A matrix or vector, or its part, in the given dtype; block FP8 is multiplied by its scales in fp32 first.

        Always a copy: what safetensors returns may be a view of the mapped file, at any alignment.
        """
        values = self.read_stored(name, rows, columns)
        if self._entries[name].stored.dtype == FP8_DTYPE:
            scales = self.read_finite(name + SCALE_SUFFIX)
            values = dequantize(values, scales, rows.start or 0, columns.start or 0)
        return values.to(dtype, copy=True, memory_format=torch.contiguous_format)

    def read_finite(self, name: str, rows: slice = WHOLE) -> Tensor:
        """A tensor of scales as stored, or its rows; TENSOR_VALUE if one of all its values is NaN or infinite."""
        values = self.read_stored(name)
        if not torch.isfinite(values).all():
            message = f"{name} holds a NaN or infinite value"
            raise CheckpointError(CheckpointReason.TENSOR_VALUE, message)
        return values[rows]

    def read_stored(self, name: str, rows: slice = WHOLE, columns: slice = WHOLE) -> Tensor:
        """A tensor as stored, or the given part of its first two axes. No rows or columns of a 0-dimensional one."""
        entry = self._entries[name]
        try:
            values = self._slice(entry, rows, columns)
        except (OSError, SafetensorError) as error:
            message = f"{name}: {entry.stored.file.name} cannot be read: {error}"
            raise CheckpointError(CheckpointReason.FILE_UNREADABLE, message) from error
        self._done += entry.num_bytes
        self._progress(self._done, self._total)
        return values

    def _slice(self, entry: Entry, rows: slice, columns: slice) -> Tensor:
        file = self._open(entry.stored.file)
        if not entry.shape:
            scalar: Tensor = file.get_tensor(entry.stored.name)
            return scalar
        start, stop, _ = rows.indices(entry.shape[0])
        keys = [slice(entry.row_offset + start, entry.row_offset + stop)]
        if len(entry.shape) > 1:
            keys.append(columns)
        if entry.index is not None:
            keys.insert(0, slice(entry.index, entry.index + 1))
        values: Tensor = file.get_slice(entry.stored.name)[tuple(keys)]
        return values if entry.index is None else values.squeeze(0)

    def _open(self, path: Path) -> Any:
        if path not in self._files:
            self._files[path] = safe_open(path, framework="pt")
        return self._files[path]
