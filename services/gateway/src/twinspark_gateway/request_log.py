"""The request log: a file of one JSON line a request, without text, that rotates by size."""

import json
import logging
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from twinspark_gateway.settings import Settings


class RequestLogError(Exception):
    """The file cannot be written; the message says why."""


class _PrivateFile(RotatingFileHandler):
    """Files that only their owner may read."""

    def _open(self) -> TextIOWrapper:
        opened = open(self.baseFilename, self.mode, encoding=self.encoding, opener=_open_private)  # noqa: SIM115
        assert isinstance(opened, TextIOWrapper)
        return opened


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class RequestLog:
    """Appends to the file; once it is full it becomes `file.1`, that `file.2`, and so on. Used from the event loop."""

    def __init__(self, path: Path, *, max_bytes: int, num_kept: int) -> None:
        """Open the file. Raises RequestLogError."""
        try:
            self._file = _PrivateFile(path, maxBytes=max_bytes, backupCount=num_kept, encoding="utf-8")
        except OSError as error:
            raise RequestLogError(f"the request log cannot be written: {os.strerror(error.errno or 0)}") from error

    def write(self, fields: Mapping[str, object]) -> None:
        """Append one line. What goes wrong with the disk is told on stderr and stops no request."""
        line = json.dumps({"time": datetime.now(UTC).isoformat(timespec="milliseconds"), **fields})
        self._file.handle(logging.LogRecord("request", logging.INFO, "", 0, line, None, None))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def build_request_log(settings: Settings) -> RequestLog | None:
    """Give the log that the settings name, None if they name none. Raises RequestLogError."""
    path = settings.request_log_file
    if path is None:
        return None
    return RequestLog(path, max_bytes=settings.request_log_bytes, num_kept=settings.request_log_kept)
