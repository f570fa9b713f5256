"""Opening and loading a checkpoint: how context and blocks follow from the settings, and what a load refuses."""

from pathlib import Path
from typing import Any

import pytest

from twinspark_engine.kv_cache.memory_rule import MemoryBudgetError
from twinspark_engine.masks.source import NO_MASKS
from twinspark_engine.model_loading import ContextSettingError, open_checkpoint
from twinspark_engine.ranks.transport import LocalTransport
from twinspark_engine.runner.sampling.adjustments import SLOT_COLUMN_BYTES
from twinspark_engine.settings import Settings
from twinspark_tools.tiny_checkpoint.folder import write_checkpoint
from twinspark_tools.tiny_checkpoint.shapes import SHAPES


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    write_checkpoint(folder, SHAPES["tiny"])
    return folder


def settings_of(folder: Path, **fields: Any) -> Settings:
    return Settings(model=folder, **fields)


@pytest.mark.parametrize(
    ("fields", "context_tokens", "num_blocks"),
    [
        ({"context": 1000, "slots": 3}, 1000, 12),
        ({"context": 1000, "slots": 3, "kv_blocks": 5}, 1000, 5),
        ({"slots": 2, "kv_blocks": 3}, 768, 3),
    ],
    ids=["a context for every slot", "a smaller pool", "a context as large as the pool"],
)
def test_blocks_hold_at_least_one_context(
    folder: Path, fields: dict[str, Any], context_tokens: int, num_blocks: int
) -> None:
    checkpoint = open_checkpoint(settings_of(folder, **fields))
    assert (checkpoint.context_tokens, checkpoint.num_blocks) == (context_tokens, num_blocks)


def test_a_context_that_is_set_and_that_the_blocks_cannot_hold_is_refused(folder: Path) -> None:
    with pytest.raises(ContextSettingError, match="context 1000 needs kv_blocks 4 or more, not 3"):
        open_checkpoint(settings_of(folder, context=1000, kv_blocks=3))


def test_a_load_that_would_leave_less_than_the_reserve_is_refused(folder: Path) -> None:
    with pytest.raises(MemoryBudgetError, match=r"4 slots of .* must stay so"):
        open_checkpoint(settings_of(folder, context=512, memory_reserve_mib=1 << 24)).load(LocalTransport(), NO_MASKS)


def test_an_fp8_cache_costs_less_and_the_account_adds_up(folder: Path) -> None:
    accounts = {}
    for kv_dtype in ("compute", "fp8"):
        settings = settings_of(folder, context=512, slots=2, kv_dtype=kv_dtype, memory_reserve_mib=0)
        loaded = open_checkpoint(settings).load(LocalTransport(), NO_MASKS)
        account = loaded.measure_memory()
        assert account.kv_pool is not None
        assert account.budget is not None
        assert (account.kv_pool.num_blocks, account.kv_pool.num_used_blocks) == (4, 0)
        assert account.parts["kv"] == (4 + 2) * account.kv_pool.block_bytes, "the null and the trash block on top"
        sampling_bytes = SLOT_COLUMN_BYTES * SHAPES["tiny"].vocab_size
        state_bytes = (2 + 1) * account.budget.slot_bytes - sampling_bytes
        assert account.parts["state"] == state_bytes, "the trash row on top, from which nothing is drawn"
        assert loaded.free_bytes is not None
        assert 0 < loaded.free_bytes() <= account.total_bytes
        accounts[kv_dtype] = account
    assert accounts["fp8"].parts["kv"] < accounts["compute"].parts["kv"]
