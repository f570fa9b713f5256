"""One rank of the engine: `python -m twinspark_engine`, settings from the environment."""

import asyncio
import sys

import structlog

from twinspark_engine.app import serve
from twinspark_engine.model.checkpoint_error import CheckpointError
from twinspark_engine.model_loading import ContextSettingError, open_checkpoint
from twinspark_engine.settings import Settings
from twinspark_engine.step_thread import EXIT_CONFIGURATION, EXIT_FAILED
from twinspark_rpc import AddressTakenError, configure_logging, load_settings

log = structlog.get_logger()


def main() -> int:
    """Run until a signal; returns the exit code."""
    settings = load_settings(Settings)
    configure_logging("engine", settings.log_level, rank=settings.rank)
    try:
        return asyncio.run(serve(settings, open_checkpoint(settings)))
    except CheckpointError as error:
        log.error("checkpoint_refused", reason=error.reason, message=str(error))
        return EXIT_CONFIGURATION
    except ContextSettingError as error:
        log.error("settings_refused", message=str(error))
        return EXIT_CONFIGURATION
    except AddressTakenError as error:
        log.error("address_taken", message=str(error))
        return EXIT_FAILED


if __name__ == "__main__":
    sys.exit(main())
