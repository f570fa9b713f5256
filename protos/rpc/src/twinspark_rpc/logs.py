"""Logs as JSON lines on stdout: event name first, then level, time, the process's constants, then fields.

`request_id` comes from structlog's context variables; `service` and `rank` are constants of the process, so that
threads have them too. Lines of libraries that use the standard logging module take the same form.
"""

import logging
import sys

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

_FIRST = ("event", "level", "time")
_CHATTY = ("asyncio", "grpc")  # their debug lines hide ours


def configure_logging(service: str, level: str = "info", **constants: str | int) -> None:
    """Set up logging of this process, once, before the first log line. `level`: debug, info, warning or error."""
    fields = {"service": service, **constants}

    def add_constants(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        return {**fields, **event}

    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        structlog.processors.format_exc_info,
        add_constants,
        put_event_first,
    ]
    structlog.configure(
        processors=[*shared[:2], *shared[3:], structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(default=str),
            ],
        )
    )
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    for library in _CHATTY:
        logging.getLogger(library).setLevel(max(logging.INFO, logging.getLogger().level))


def put_event_first(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Order the keys of a line: event, level, time, then the rest as they came."""
    return {**{key: event[key] for key in _FIRST if key in event}, **event}
