"""The grammar service: `python -m twinspark_grammar`, settings from the environment."""

import asyncio
import sys

import structlog

from twinspark_grammar.app import serve
from twinspark_grammar.settings import Settings
from twinspark_grammar.vocabulary import VocabularyError, load_vocabulary
from twinspark_rpc import AddressTakenError, configure_logging, load_settings

log = structlog.get_logger()

EXIT_FAILED = 1
EXIT_CONFIGURATION = 78


def main() -> int:
    """Serve until a signal; returns the exit code."""
    settings = load_settings(Settings)
    configure_logging("grammar", settings.log_level)
    try:
        asyncio.run(serve(settings, load_vocabulary(settings.model)))
    except VocabularyError as error:
        log.error("tokenizer_refused", message=str(error))
        return EXIT_CONFIGURATION
    except AddressTakenError as error:
        log.error("address_taken", message=str(error))
        return EXIT_FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
