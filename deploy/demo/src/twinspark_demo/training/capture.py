"""Work of a training step as CUDA graphs."""

from collections.abc import Callable
from typing import Any

import torch

WARMUPS = 2
Work = Callable[[], object]


class CaptureDiffersError(RuntimeError):
    """The captured step gives another loss than the same step run eagerly."""


class GraphCapture:
    """Captures the graphs of one step. They share memory, since they run one after the other."""

    def __init__(self) -> None:
        self._pool: Any = None

    def capture(self, work: Work) -> Work:
        """What replays the work."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            work()
        self._pool = self._pool or graph.pool()
        return graph.replay

    def capture_checked(self, work: Work, loss_of: Callable[[Work], float], tolerance: float) -> Work:
        """What replays the work, after eager runs on a side stream, as capture asks for.

        loss_of: runs work and gives its loss. Raises CaptureDiffersError where a replay's loss is off the last eager
        run's by more than tolerance, relative.
        """
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARMUPS):
                eager = loss_of(work)
        torch.cuda.current_stream().wait_stream(stream)
        replay = self.capture(work)
        captured = loss_of(replay)
        if not abs(captured - eager) <= tolerance * abs(eager):
            raise CaptureDiffersError(f"the captured step has loss {captured}, the eager one {eager}")
        return replay
