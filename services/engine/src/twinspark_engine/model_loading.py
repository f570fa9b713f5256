"""Opens a checkpoint folder: what its small files say at once, and the load that each rank does later."""

import time

import structlog
import torch

from twinspark_engine.checkpoint import Checkpoint
from twinspark_engine.machine_check import check_machine
from twinspark_engine.memory import MemoryAccount, measure_memory
from twinspark_engine.model.config import ModelConfig
from twinspark_engine.model.model import Model
from twinspark_engine.model.state import ModelState
from twinspark_engine.model.weights import checkpoint_hash, eos_token_ids, load_weights, masked_token_ids
from twinspark_engine.ranks.group import LoadedRank
from twinspark_engine.ranks.pair_transport import PairTransport
from twinspark_engine.ranks.transport import Transport
from twinspark_engine.runner.runner import Runner, RunnerLimits
from twinspark_engine.settings import Settings

log = structlog.get_logger()

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
DEFAULT_CONTEXT_TOKENS = 32_768
"""Used where neither the settings nor a smaller checkpoint says otherwise."""
PROGRESS_SECONDS = 5.0


class ContextSettingError(Exception):
    """The context that is set exceeds what the checkpoint was made for."""


def open_checkpoint(settings: Settings) -> Checkpoint:
    """Read the checkpoint's config and headers. Raises CheckpointError, ContextSettingError."""
    config = ModelConfig.from_folder(settings.model)
    config.check_world_size(settings.world_size)
    context_tokens = _context_tokens(settings, config)
    limits = RunnerLimits(
        num_slots=settings.slots,
        context_tokens=context_tokens,
        max_prompt_rows=max(settings.chunk_tokens_alone, settings.chunk_tokens_beside_decoders),
        eos_token_ids=frozenset(eos_token_ids(settings.model)),
        masked_token_ids=masked_token_ids(settings.model, config.vocab_size),
    )
    return Checkpoint(
        vocabulary_size=config.vocab_size,
        eos_token_ids=tuple(sorted(limits.eos_token_ids)),
        masked_token_ids=limits.masked_token_ids,
        context_tokens=context_tokens,
        checkpoint_hash=checkpoint_hash(settings.model),
        load=lambda transport: load_rank(settings, config, limits, transport),
    )


def load_rank(settings: Settings, config: ModelConfig, limits: RunnerLimits, transport: Transport) -> LoadedRank:
    """Weights, state, model and runner of this rank, in the thread that will use them."""
    torch.set_num_threads(settings.threads)  # OpenMP keeps this number by thread
    started = time.monotonic()
    log.info("weights_loading", folder=settings.model.name)
    weights = load_weights(
        settings.model, config, settings.rank, settings.world_size, DTYPES[settings.dtype], ProgressLog()
    )
    check_machine(config, weights)
    log.info("drafting_off", reason="no drafters yet" if weights.mtp else "the checkpoint has no MTP layer")
    state = ModelState.allocate(
        config, settings.world_size, limits.num_slots, limits.context_tokens, DTYPES[settings.dtype]
    )
    runner = Runner(Model(config, weights, transport), state, transport, limits)
    parts = {"weights": weights.nbytes, "kv": state.kv_nbytes, "state": state.nbytes - state.kv_nbytes}
    log.info("weights_loaded", seconds=round(time.monotonic() - started, 3), **parts)

    def measure() -> MemoryAccount:
        workspace = transport.num_buffer_bytes if isinstance(transport, PairTransport) else 0
        return measure_memory(settings.rank, {**parts, "workspace": workspace})

    return LoadedRank(runner, measure)


class ProgressLog:
    """Logs how far a load is, every few seconds."""

    def __init__(self) -> None:
        self._logged_at = time.monotonic()

    def __call__(self, num_bytes: int, total_bytes: int) -> None:
        """Hear that num_bytes of total_bytes are read."""
        now = time.monotonic()
        if now - self._logged_at >= PROGRESS_SECONDS:
            self._logged_at = now
            log.info("weights_progress", percent=100 * num_bytes // max(total_bytes, 1))


def _context_tokens(settings: Settings, config: ModelConfig) -> int:
    most = config.max_position_embeddings
    if settings.context > most:
        raise ContextSettingError(f"context is {settings.context}, but the checkpoint was made for {most} tokens")
    return settings.context or min(most, DEFAULT_CONTEXT_TOKENS)
