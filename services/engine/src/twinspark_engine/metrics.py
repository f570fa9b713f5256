"""Prometheus metrics of rank 0, made from its Stats when scraped; names as in docs/metrics.md."""

from collections.abc import Callable, Iterator

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from twinspark_engine.stats import Stats

COUNTERS: dict[str, tuple[str, Callable[[Stats], float]]] = {
    "twinspark_engine_requests": ("Requests accepted.", lambda s: s.requests_total),
    "twinspark_engine_requests_failed": (
        "Requests that ended with an error status.",
        lambda s: s.requests_failed_total,
    ),
    "twinspark_engine_requests_cancelled": (
        "Requests that the caller cancelled.",
        lambda s: s.requests_cancelled_total,
    ),
    "twinspark_engine_requests_yielded": (
        "Times that a background request gave its slot up, to be run again.",
        lambda s: s.requests_yielded_total,
    ),
    "twinspark_engine_prompt_tokens": ("Prompt tokens computed.", lambda s: s.prompt_tokens_total),
    "twinspark_engine_output_tokens": ("Output tokens committed.", lambda s: s.output_tokens_total),
    "twinspark_engine_steps": ("Steps executed.", lambda s: s.steps_total),
    "twinspark_engine_prefill_seconds": ("Time spent in prefill forwards.", lambda s: s.prefill_us_total / 1e6),
    "twinspark_engine_decode_seconds": ("Time spent in decode forwards.", lambda s: s.decode_us_total / 1e6),
    "twinspark_engine_mask_wait_seconds": (
        "Time that steps waited for token masks after their logits were there.",
        lambda s: s.mask_wait_us_total / 1e6,
    ),
    "twinspark_engine_masked_rows": ("Rows drawn under a token mask.", lambda s: s.masked_rows_total),
    "twinspark_engine_epochs": ("Times that the group of ranks was formed.", lambda s: s.epochs_total),
}
"""Name without the suffix _total, which the exposition adds: help text and value."""

GAUGES: dict[str, tuple[str, Callable[[Stats], float]]] = {
    "twinspark_engine_running_requests": ("Requests in a slot.", lambda s: s.num_running),
    "twinspark_engine_waiting_requests": ("Requests waiting for admission.", lambda s: s.num_waiting),
    "twinspark_engine_prefilling_requests": (
        "Requests in a slot whose prompt is being computed.",
        lambda s: s.num_prefilling,
    ),
    "twinspark_engine_kv_blocks": ("KV blocks that requests share.", lambda s: s.num_blocks),
    "twinspark_engine_used_kv_blocks": ("KV blocks that requests hold.", lambda s: s.num_used_blocks),
}

SLOT_ADMISSIONS_TEXT = "Requests that were given each slot."


class StatsCollector(Collector):
    """Register it once, on the registry of the process."""

    def __init__(self, stats: Stats) -> None:
        self._stats = stats

    def collect(self) -> Iterator[Metric]:
        """Metrics as of now."""
        for name, (text, value) in COUNTERS.items():
            yield CounterMetricFamily(name, text, value=value(self._stats))
        for name, (text, value) in GAUGES.items():
            yield GaugeMetricFamily(name, text, value=value(self._stats))
        by_slot = CounterMetricFamily("twinspark_engine_slot_admissions", SLOT_ADMISSIONS_TEXT, labels=["slot"])
        for slot, count in enumerate(self._stats.slot_admissions_total):
            by_slot.add_metric([str(slot)], count)
        yield by_slot
