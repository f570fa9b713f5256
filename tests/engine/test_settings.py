"""Settings of the engine: bounds, and the mark that each field carries."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from twinspark_engine.settings import INHERITED_SCOPES, Scope, Settings, agreed_values, mask_timeout_seconds, scope_of
from twinspark_rpc import ChannelSettings, ListenSettings, ServiceSettings


def build(**fields: Any) -> Settings:
    return Settings(model=Path("m"), **fields)


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_field_says_whether_ranks_must_agree_on_it(name: str) -> None:
    assert isinstance(scope_of(name), Scope)


def test_what_changes_a_shape_a_bit_or_the_order_of_exchanges_is_agreed_and_nothing_else() -> None:
    """Written out by hand: a mark that is wrong would let ranks serve with different values."""
    agreed = {name for name in Settings.model_fields if scope_of(name) is Scope.AGREE}
    assert agreed == {
        "chunk_tokens_alone",
        "chunk_tokens_beside_decoders",
        "context",
        "dtype",
        "exchange_timeout_ms",
        "kv_blocks",
        "kv_dtype",
        "max_top_logprobs",
        "seed_salt",
        "slots",
        "transport",
        "world_size",
    }


def test_the_inherited_scopes_are_those_of_the_shared_fields_and_no_others() -> None:
    shared = {*ServiceSettings.model_fields, *ListenSettings.model_fields, *ChannelSettings.model_fields}
    assert set(INHERITED_SCOPES) == shared - {"port"}


def test_agreed_values_hold_every_agreed_field_and_change_with_it() -> None:
    values = agreed_values(build())
    assert set(values) == {name for name in Settings.model_fields if scope_of(name) is Scope.AGREE}
    assert agreed_values(build(slots=7))["slots"] == "7"
    assert agreed_values(build(port=1, queue_limit=9)) == values


@pytest.mark.parametrize("name", ["chunk_tokens_beside_decoders", "chunk_tokens_alone"])
def test_a_chunk_that_is_no_multiple_of_64_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match=f"{name} must be a multiple of 64, not 100"):
        build(**{name: 100})
    assert getattr(build(**{name: 128}), name) == 128


@pytest.mark.parametrize(
    ("name", "value"),
    [("decode_share", -0.1), ("decode_share", 1.0), ("arrival_wait_ms", 11), ("chunk_tokens_alone", 0)],
)
def test_a_setting_of_the_scheduler_out_of_range_is_refused(name: str, value: float) -> None:
    with pytest.raises(ValidationError, match=name):
        build(**{name: value})


def test_the_defaults_are_chunks_of_2048_beside_decoders_and_4096_alone_and_half_of_the_time_for_decode() -> None:
    settings = build()
    assert (settings.chunk_tokens_beside_decoders, settings.chunk_tokens_alone) == (2048, 4096)
    assert (settings.decode_share, settings.short_prompt_tokens, settings.arrival_wait_ms) == (0.5, 1024, 10)


@pytest.mark.parametrize("slots", [1, 16])
def test_slots_from_1_to_16_are_taken(slots: int) -> None:
    assert build(slots=slots).slots == slots


@pytest.mark.parametrize("slots", [0, 17])
def test_slots_outside_1_to_16_are_refused(slots: int) -> None:
    with pytest.raises(ValidationError):
        build(slots=slots)


@pytest.mark.parametrize("value", [10_000, 20_000])
def test_the_wait_for_masks_is_below_the_exchange_timeout(value: int) -> None:
    with pytest.raises(ValidationError, match="mask_timeout_ms must be below exchange_timeout_ms, 10000"):
        build(mask_timeout_ms=value)
    assert mask_timeout_seconds(build(mask_timeout_ms=9_999)) == 9.999
    assert mask_timeout_seconds(build(exchange_timeout_ms=200)) == 0.05
    assert mask_timeout_seconds(build(exchange_timeout_ms=60_000)) == 1.0


def test_rank_0_needs_one_peer_for_each_other_rank_and_others_none() -> None:
    assert build(world_size=3, peers="a:1, b:2").peers == ("a:1", "b:2")
    with pytest.raises(ValidationError, match="rank 0 of 2 needs 1 peers, not 0"):
        build(world_size=2)
    with pytest.raises(ValidationError, match="rank 1 of 2 needs 0 peers, not 1"):
        build(world_size=2, rank=1, peers="a:1")
    with pytest.raises(ValidationError, match="rank 2 needs a world_size above it"):
        build(world_size=2, rank=2)


def test_peers_come_from_a_variable_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWINSPARK_ENGINE_PEERS", "127.0.0.1:7101")
    monkeypatch.setenv("TWINSPARK_ENGINE_WORLD_SIZE", "2")
    assert build().peers == ("127.0.0.1:7101",)
