"""A whole engine rank whose model is HashRunner: `python hash_engine.py`, settings from the environment.

HASH_STEP_SECONDS makes each forward last; HASH_CHECKPOINT stands for the checkpoint's hash.
"""

import asyncio
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import structlog

from support.hash_runner import EOS_TOKEN_ID, VOCABULARY_SIZE, HashRunner
from twinspark_engine.app import serve
from twinspark_engine.checkpoint import Checkpoint
from twinspark_engine.masks.source import MaskAccess
from twinspark_engine.memory import measure_memory
from twinspark_engine.ranks.group import LoadedRank
from twinspark_engine.ranks.transport import Transport
from twinspark_engine.settings import Settings
from twinspark_rpc import configure_logging, load_settings

log = structlog.get_logger()


def build_checkpoint(settings: Settings) -> Checkpoint:
    def load(transport: Transport, masks: MaskAccess) -> LoadedRank:
        log.info("weights_loading")
        time.sleep(float(os.environ.get("HASH_LOAD_SECONDS", "0")))
        runner = HashRunner(transport, settings.slots, float(os.environ.get("HASH_STEP_SECONDS", "0")))
        return LoadedRank(runner, lambda: measure_memory(settings.rank, {"weights": 1000 + settings.rank}))

    return Checkpoint(
        vocabulary_size=VOCABULARY_SIZE,
        eos_token_ids=(EOS_TOKEN_ID,),
        masked_token_ids=frozenset(),
        context_tokens=settings.context or 1024,
        checkpoint_hash=os.environ.get("HASH_CHECKPOINT", "same"),
        load=load,
    )


def main() -> int:
    settings = load_settings(Settings)
    configure_logging("engine", settings.log_level, rank=settings.rank)
    return asyncio.run(serve(settings, build_checkpoint(settings)))


if __name__ == "__main__":
    sys.exit(main())
