"""Opens a checkpoint folder: what its small files say at once, and the load that each rank does later."""

import time
from functools import partial

import structlog
import torch

from twinspark_engine.checkpoint import Checkpoint
from twinspark_engine.kv_cache.block_reservations import BLOCK_TOKENS, BlockReservations
from twinspark_engine.kv_cache.memory_rule import LoadNeeds, check_load
from twinspark_engine.machine_check import check_machine
from twinspark_engine.masks.source import MaskAccess
from twinspark_engine.memory import KvPool, MemoryAccount, MemoryBudget, MemorySource, measure_memory
from twinspark_engine.memory_sources import build_memory_source
from twinspark_engine.model.config import ModelConfig
from twinspark_engine.model.model import Model
from twinspark_engine.model.state import ModelState
from twinspark_engine.model.weights import checkpoint_hash, eos_token_ids, load_weights, masked_token_ids
from twinspark_engine.ranks.group import LoadedRank
from twinspark_engine.ranks.pair_transport import PairTransport
from twinspark_engine.ranks.transport import Transport
from twinspark_engine.runner.runner import Runner, RunnerLimits
from twinspark_engine.runner.sampling.adjustments import SLOT_COLUMN_BYTES
from twinspark_engine.settings import Settings
from twinspark_kernels.indexer import scratch_bytes

log = structlog.get_logger()

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
DEFAULT_CONTEXT_TOKENS = 32_768
"""Used where neither the settings nor a smaller checkpoint says otherwise."""
PROGRESS_SECONDS = 5.0
DEFAULT_MOST_BLOCKS = 4097
"""A request of 2^20 tokens and one more block: taken where the settings say nothing of the pool."""
MIB = 2**20


class ContextSettingError(Exception):
    """The context that is set exceeds what the checkpoint was made for, or what the KV blocks hold."""


def open_checkpoint(settings: Settings) -> Checkpoint:
    """Read the checkpoint's config and headers. Raises CheckpointError, ContextSettingError."""
    config = ModelConfig.from_folder(settings.model)
    config.check_world_size(settings.world_size)
    context_tokens = _context_tokens(settings, config)
    num_blocks = _num_blocks(settings, context_tokens)
    limits = RunnerLimits(
        num_slots=settings.slots,
        context_tokens=context_tokens,
        max_prompt_rows=max(settings.chunk_tokens_alone, settings.chunk_tokens_beside_decoders),
        eos_token_ids=frozenset(eos_token_ids(settings.model)),
        masked_token_ids=masked_token_ids(settings.model, config.vocab_size),
        check_cache=settings.check_cache,
    )
    return Checkpoint(
        vocabulary_size=config.vocab_size,
        eos_token_ids=tuple(sorted(limits.eos_token_ids)),
        masked_token_ids=limits.masked_token_ids,
        context_tokens=context_tokens,
        checkpoint_hash=checkpoint_hash(settings.model),
        load=lambda transport, masks: load_rank(settings, config, limits, num_blocks, transport, masks),
        pool_tokens=config.index_kpool,
        num_blocks=num_blocks,
        scratch_bytes=partial(
            scratch_bytes, pool=config.index_kpool, heads=config.index_n_heads, max_rows=limits.max_prompt_rows
        ),
    )


def load_rank(
    settings: Settings,
    config: ModelConfig,
    limits: RunnerLimits,
    num_blocks: int,
    transport: Transport,
    masks: MaskAccess,
) -> LoadedRank:
    """Weights, state, model and runner of this rank, in the thread that will use them.

    Raises CheckpointError, RowInvarianceError, MemoryBudgetError.
    """
    torch.set_num_threads(settings.threads)  # OpenMP keeps this number by thread
    started = time.monotonic()
    log.info("weights_loading", folder=settings.model.name)
    weights = load_weights(
        settings.model, config, settings.rank, settings.world_size, DTYPES[settings.dtype], ProgressLog()
    )
    check_machine(config, weights)
    log.info("drafting_off", reason="no drafters yet" if weights.mtp else "the checkpoint has no MTP layer")
    source = build_memory_source(settings.memory_source)
    model = Model(config, weights, transport)
    sampling_bytes = SLOT_COLUMN_BYTES * model.num_vocab_columns
    state = _allocate_state(settings, config, limits, num_blocks, source, sampling_bytes)
    runner = Runner(model, state, transport, limits, masks)
    fixed = state.nbytes - state.kv_nbytes + runner.slot_table_bytes
    parts = {"weights": weights.nbytes, "kv": state.kv_nbytes, "state": fixed}
    log.info("weights_loaded", seconds=round(time.monotonic() - started, 3), **parts)
    slot_bytes = state.slot_nbytes + sampling_bytes
    budget = MemoryBudget(slot_bytes, settings.memory_reserve_mib * MIB, settings.memory_admit_mib * MIB)

    def measure() -> MemoryAccount:
        workspace = transport.num_buffer_bytes if isinstance(transport, PairTransport) else 0
        now = {**parts, "scratch": state.scratch.nbytes, "workspace": workspace}
        pool = KvPool(num_blocks, runner.num_used_blocks, BLOCK_TOKENS, state.block_nbytes)
        return measure_memory(settings.rank, now, source, pool, budget)

    return LoadedRank(runner, measure, lambda: source.read().free_bytes)


def _allocate_state(
    settings: Settings,
    config: ModelConfig,
    limits: RunnerLimits,
    num_blocks: int,
    source: MemorySource,
    sampling_bytes: int,
) -> ModelState:
    """The state of all slots, if enough stays free beside it and what sampling keeps for each slot.

    Raises MemoryBudgetError.
    """
    allocate = partial(
        ModelState.allocate,
        config,
        settings.world_size,
        limits.num_slots,
        limits.context_tokens,
        DTYPES[settings.dtype],
        num_blocks=num_blocks,
        latent_dtype=torch.float8_e4m3fn if settings.kv_dtype == "fp8" else None,
    )
    with torch.device("meta"):
        sizes = allocate()
    slot_bytes = sizes.slot_nbytes + sampling_bytes
    needs = LoadNeeds(slot_bytes, limits.num_slots, sizes.block_nbytes, sizes.kv_nbytes // sizes.block_nbytes)
    free_bytes, reserve_bytes = source.read().free_bytes, settings.memory_reserve_mib * MIB
    check_load(needs, free_bytes, reserve_bytes)
    log.info(
        "cache_planned",
        num_blocks=num_blocks,
        block_bytes=sizes.block_nbytes,
        slot_bytes=slot_bytes,
        kv_dtype=settings.kv_dtype,
        memory_source=source.name,
        free_bytes=free_bytes,
        reserve_bytes=reserve_bytes,
    )
    return allocate()


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
    context = settings.context or min(most, DEFAULT_CONTEXT_TOKENS)
    if not settings.kv_blocks or BlockReservations.blocks_for(context) <= settings.kv_blocks:
        return context
    if settings.context:
        needed = BlockReservations.blocks_for(context)
        raise ContextSettingError(f"context {context} needs kv_blocks {needed} or more, not {settings.kv_blocks}")
    return settings.kv_blocks * BLOCK_TOKENS


def _num_blocks(settings: Settings, context_tokens: int) -> int:
    """Blocks that requests share: as set, else a context for every slot, at most one of 2^20 tokens and one block."""
    return settings.kv_blocks or min(settings.slots * BlockReservations.blocks_for(context_tokens), DEFAULT_MOST_BLOCKS)
