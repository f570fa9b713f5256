"""The one thread that touches tensors: starts it, and tells the event loop's thread how it ended."""

import asyncio
import threading
from collections.abc import Callable

import structlog

from twinspark_engine.errors import RanksDifferError
from twinspark_engine.kv_cache.memory_rule import MemoryBudgetError
from twinspark_engine.model.checkpoint_error import CheckpointError
from twinspark_kernels.self_check import RowInvarianceError

log = structlog.get_logger()

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_CONFIGURATION = 78
"""sysexits' EX_CONFIG: starting again without changing something is useless."""


class StepThread:
    """Constructed and awaited in the event loop's thread. A daemon: a thread that is stuck never keeps the process."""

    def __init__(self, run: Callable[[], None]) -> None:
        self._run = run
        self._event_loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[int] = self._event_loop.create_future()
        """The exit code that the thread's end means for the process."""
        self._thread = threading.Thread(target=self._main, name="step", daemon=True)

    def start(self) -> None:
        """Begin. Called once."""
        self._thread.start()

    def refuse(self) -> None:
        """End the process as if the thread had found its configuration wrong. From the event loop's thread."""
        self._resolve(EXIT_CONFIGURATION)

    def _main(self) -> None:
        code = EXIT_FAILED  # of an exception that nobody expected: threading's hook logs it
        try:
            self._run()
            code = EXIT_OK
        except RanksDifferError as error:
            log.error("ranks_refused", reason=error.REASON, message=error.message)
            code = EXIT_CONFIGURATION
        except CheckpointError as error:
            log.error("checkpoint_refused", reason=error.reason, message=str(error))
            code = EXIT_CONFIGURATION
        except RowInvarianceError as error:
            log.error("machine_refused", message=str(error))
            code = EXIT_CONFIGURATION
        except MemoryBudgetError as error:
            log.error("memory_refused", message=str(error))
            code = EXIT_CONFIGURATION
        finally:
            self._event_loop.call_soon_threadsafe(self._resolve, code)

    def _resolve(self, code: int) -> None:
        if not self.ended.done():
            self.ended.set_result(code)


def log_thread_failure(failure: threading.ExceptHookArgs) -> None:
    """For threading.excepthook: an exception that ends a thread goes to the log with its traceback."""
    name = failure.thread.name if failure.thread is not None else ""
    log.error("thread_failed", thread=name, exc_info=failure.exc_value)
