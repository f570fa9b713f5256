"""Runs the gateway: settings, application, HTTP server."""

import signal
import sys
from types import FrameType

import uvicorn

from twinspark_gateway.app import build_app
from twinspark_gateway.prompt.chat_template import ChatTemplateError
from twinspark_gateway.prompt.tokenizer import TokenizerError
from twinspark_gateway.schemas.sampling_defaults import GenerationConfigError
from twinspark_gateway.settings import Settings
from twinspark_gateway.web.keys import KeysError
from twinspark_gateway.web.listener import AddressTakenError, open_listener
from twinspark_rpc import configure_logging, load_settings


def _end(number: int, frame: FrameType | None) -> None:
    """End at once and well. The server has handlers of its own while it runs, and raises the signal again after."""
    raise SystemExit(0)


def main() -> None:
    """Serve until SIGTERM or SIGINT; running requests then get the drain time."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    settings = load_settings(Settings)
    configure_logging("gateway", settings.log_level)
    try:
        app = build_app(settings)
        listener = open_listener(settings.host, settings.port)
    except (TokenizerError, ChatTemplateError, GenerationConfigError, KeysError, AddressTakenError) as error:
        sys.exit(f"twinspark_gateway: {error}")
    config = uvicorn.Config(
        app,
        access_log=False,
        log_config=None,
        log_level="warning",
        timeout_keep_alive=settings.idle_seconds,
        timeout_graceful_shutdown=settings.drain_seconds,
        server_header=False,
    )
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
