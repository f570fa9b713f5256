"""Metrics of rank 0 as Prometheus reads them."""

from prometheus_client import CollectorRegistry, generate_latest

from twinspark_engine.metrics import COUNTERS, GAUGES, StatsCollector
from twinspark_engine.stats import Stats


def test_every_counter_and_gauge_is_exposed_with_its_value() -> None:
    stats = Stats(output_tokens_total=7, num_running=3, decode_us_total=2_500_000, slot_admissions_total=(4, 5))
    stats.mask_wait_us_total = 4_000
    registry = CollectorRegistry()
    registry.register(StatsCollector(stats))
    lines = generate_latest(registry).decode().splitlines()
    assert "twinspark_engine_output_tokens_total 7.0" in lines
    assert "twinspark_engine_running_requests 3.0" in lines
    assert "twinspark_engine_decode_seconds_total 2.5" in lines
    assert "twinspark_engine_mask_wait_seconds_total 0.004" in lines
    stats.output_tokens_total = 9
    assert "twinspark_engine_output_tokens_total 9.0" in generate_latest(registry).decode().splitlines()
    by_slot = {f'twinspark_engine_slot_admissions_total{{slot="{slot}"}}' for slot in (0, 1)}
    assert 'twinspark_engine_slot_admissions_total{slot="1"} 5.0' in lines
    names = {line.split(" ")[0] for line in lines if not line.startswith("#")}
    assert names == {f"{name}_total" for name in COUNTERS} | set(GAUGES) | by_slot
