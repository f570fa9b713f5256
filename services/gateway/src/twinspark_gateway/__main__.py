"""Runs the gateway: settings, application, HTTP server."""

import gc
import signal
import sys
from types import FrameType

from twinspark_gateway.app import build_app
from twinspark_gateway.prompt.chat_template import ChatTemplateError
from twinspark_gateway.prompt.tokenizer import TokenizerError
from twinspark_gateway.request_log import RequestLogError
from twinspark_gateway.schemas.sampling_defaults import GenerationConfigError
from twinspark_gateway.settings import Settings
from twinspark_gateway.web.drain import Drain
from twinspark_gateway.web.keys import KeysError
from twinspark_gateway.web.listener import AddressTakenError, open_listener
from twinspark_gateway.web.server import build_server
from twinspark_rpc import configure_logging, load_settings

START_ERRORS = (
    AddressTakenError,
    ChatTemplateError,
    GenerationConfigError,
    KeysError,
    RequestLogError,
    TokenizerError,
)


def _end(number: int, frame: FrameType | None) -> None:
    """End at once and well. The server has handlers of its own while it runs, and raises the signal again after."""
    raise SystemExit(0)


def main() -> None:
    """Serve until SIGTERM or SIGINT; running requests then get the drain time."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    settings = load_settings(Settings)
    configure_logging("gateway", settings.log_level)
    drain = Drain(settings.drain_seconds)
    try:
        app = build_app(settings, drain)
        listener = open_listener(settings.host, settings.port)
    except (
        TokenizerError,
        ChatTemplateError,
        GenerationConfigError,
        KeysError,
        RequestLogError,
        AddressTakenError,
    ) as error:
        sys.exit(f"twinspark_gateway: {error}")
    server = build_server(
        app,
        drain,
        drain_seconds=settings.drain_seconds,
        idle_seconds=settings.idle_seconds,
        head_seconds=settings.body_timeout_seconds,
    )
    # What was built so far lives as long as the process. Collecting it again would stop every stream for 100 ms.
    gc.collect()
    gc.freeze()
    server.run(sockets=[listener])


if __name__ == "__main__":
    main()
