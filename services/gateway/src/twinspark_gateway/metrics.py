"""The gateway's metrics: its own counts, and the engine's from the monitor's last copy, vLLM's names beside ours."""

import asyncio
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from twinspark_gateway.clients.engine_monitor import EngineMonitor
from twinspark_gateway.clients.grammar_monitor import GrammarMonitor
from twinspark_gateway.request_record import RequestRecord

PREFIX = "twinspark_gateway_"
_COMPILE_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)
_LATENCY_BUCKETS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)

# Ours (after the prefix), the engine's gauge, what it says, vLLM's name.
_GAUGES = (
    ("engine_running_requests", "num_running", "Requests in a slot.", "num_requests_running"),
    ("engine_waiting_requests", "num_waiting", "Requests that wait for a slot.", "num_requests_waiting"),
    ("engine_prefilling_requests", "num_prefilling", "Requests whose prompt is being computed.", None),
    ("engine_used_kv_blocks", "num_blocks_used", "KV blocks that requests hold.", None),
    ("engine_asyncio_tasks", "num_asyncio_tasks", "Tasks of the event loop that serves the engine's calls.", None),
    ("engine_slots", "num_slots", "Requests that can run at once.", None),
    ("engine_epoch", "epoch", "Times that the group of ranks was formed.", None),
)
_COUNTERS = (
    ("engine_requests_total", "requests_total", "Requests that the engine accepted.", None),
    ("engine_failed_requests_total", "requests_failed_total", "Requests that ended with an error status.", None),
    (
        "engine_cancelled_requests_total",
        "requests_cancelled_total",
        "Requests whose call was cancelled: clients that left, stop strings that matched, spent thinking budgets.",
        None,
    ),
    (
        "engine_yielded_requests_total",
        "requests_yielded_total",
        "Times that a background request gave its slot up, to be run again.",
        "num_preemptions_total",
    ),
    ("engine_prompt_tokens_total", "prompt_tokens_total", "Prompt tokens.", "prompt_tokens_total"),
    ("engine_cached_tokens_total", "cached_tokens_total", "Prompt tokens from stored prefixes.", None),
    ("engine_output_tokens_total", "output_tokens_total", "Output tokens.", "generation_tokens_total"),
    ("engine_steps_total", "steps_total", "Steps executed.", None),
    ("engine_masked_rows_total", "masked_rows_total", "Rows drawn under a token mask.", None),
    ("engine_drafted_tokens_total", "drafted_tokens_total", "Proposed tokens.", "spec_decode_num_draft_tokens_total"),
    (
        "engine_accepted_tokens_total",
        "accepted_tokens_total",
        "Accepted proposed tokens.",
        "spec_decode_num_accepted_tokens_total",
    ),
)
_SECONDS = (
    ("engine_prefill_seconds_total", "prefill_us_total", "Time in prefill forwards."),
    ("engine_decode_seconds_total", "decode_us_total", "Time in decode forwards."),
    (
        "engine_mask_wait_seconds_total",
        "mask_wait_us_total",
        "Time that steps waited for token masks after their logits were there.",
    ),
)


class EngineCollector(Collector):
    """Exposes what the monitors know of the engine and of the grammar service. Called in any thread."""

    def __init__(self, monitor: EngineMonitor, grammar: GrammarMonitor | None) -> None:
        self._monitor = monitor
        self._grammar = grammar

    def collect(self) -> Iterator[Metric]:
        """Give the engine's metrics; only whether it is up while no copy exists."""
        up = 1.0 if self._monitor.problem is None else 0.0
        yield GaugeMetricFamily(f"{PREFIX}engine_up", "Whether the engine takes requests.", up)
        if self._grammar is not None:
            up = 1.0 if self._grammar.is_serving else 0.0
            yield GaugeMetricFamily(f"{PREFIX}grammar_up", "Whether the grammar service takes calls.", up)
        stalled = len(self._monitor.find_stalls())
        yield GaugeMetricFamily(f"{PREFIX}stalled_requests", "Requests without a token for too long.", stalled)
        stats, age = self._monitor.stats, self._monitor.age_seconds
        if stats is None or age is None:
            return
        yield GaugeMetricFamily(f"{PREFIX}engine_stats_age_seconds", "Age of the engine's statistics.", age)
        for name, key, help_text, twin in _GAUGES:
            for full_name in _names(name, twin):
                yield GaugeMetricFamily(full_name, help_text, stats.gauges[key])
        if stats.gauges["num_blocks"]:
            ratio = stats.gauges["num_blocks_used"] / stats.gauges["num_blocks"]
            for full_name in _names("engine_kv_usage_ratio", "kv_cache_usage_perc"):
                yield GaugeMetricFamily(full_name, "Share of the KV blocks in use.", ratio)
        for name, key, help_text, twin in _COUNTERS:
            for full_name in _names(name, twin):
                yield CounterMetricFamily(full_name, help_text, stats.counters[key])
        by_slot = CounterMetricFamily(
            f"{PREFIX}engine_slot_admissions", "Requests that were given each slot.", labels=["slot"]
        )
        for slot, count in enumerate(stats.slot_admissions):
            by_slot.add_metric([str(slot)], count)
        yield by_slot
        for name, key, help_text in _SECONDS:
            yield CounterMetricFamily(f"{PREFIX}{name}", help_text, stats.counters[key] / 1e6)


def _names(name: str, twin: str | None) -> list[str]:
    return [f"{PREFIX}{name}", *([f"vllm:{twin}"] if twin else [])]


class _Timing:
    """A histogram under our name and vLLM's."""

    def __init__(self, registry: CollectorRegistry, name: str, twin: str, help_text: str) -> None:
        self._histograms = [
            Histogram(full_name, help_text, registry=registry, buckets=_LATENCY_BUCKETS)
            for full_name in (f"{PREFIX}{name}", f"vllm:{twin}")
        ]

    def observe(self, seconds: float | None) -> None:
        """Count a duration; None is not known and not counted."""
        if seconds is not None:
            for histogram in self._histograms:
                histogram.observe(seconds)


class GatewayMetrics:
    """The metric objects of one gateway. Used from the event loop."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self._requests = Counter(
            f"{PREFIX}requests_total", "Requests by route and outcome.", ["route", "outcome"], registry=registry
        )
        self._by_key = Counter(
            f"{PREFIX}key_requests_total", "Requests by the label of their key.", ["key"], registry=registry
        )
        self._disconnections = Counter(
            f"{PREFIX}client_disconnections_total", "Requests whose client left early.", registry=registry
        )
        self._inflight = Gauge(f"{PREFIX}inflight_requests", "Generating requests in progress.", registry=registry)
        self._compilations = Counter(
            f"{PREFIX}grammar_compilations_total",
            "Calls of the grammar service's Compile by outcome: compiled, refused, unavailable, failed.",
            ["outcome"],
            registry=registry,
        )
        self._compile_seconds = Histogram(
            f"{PREFIX}grammar_compile_seconds",
            "Time of a call of Compile, also where the grammar was compiled already.",
            registry=registry,
            buckets=_COMPILE_BUCKETS,
        )
        self._checks = Counter(
            f"{PREFIX}schema_checks_total",
            "Answers whose schema masks do not wholly enforce, by outcome: valid, violated, unchecked.",
            ["outcome"],
            registry=registry,
        )
        self.num_inflight = 0
        # Generating requests that ended, and those of them that failed.
        self.num_requests = 0
        self.num_failed = 0
        self._tasks = Gauge(f"{PREFIX}asyncio_tasks", "Tasks of the gateway's event loop.", registry=registry)
        self._latency = _Timing(
            registry, "request_latency_seconds", "e2e_request_latency_seconds", "From arrival to the end of the reply."
        )
        self._first_token = _Timing(
            registry, "time_to_first_token_seconds", "time_to_first_token_seconds", "From arrival to the first output."
        )
        self._prefill = _Timing(
            registry, "request_prefill_seconds", "request_prefill_time_seconds", "From admission to the first token."
        )
        self._decode = _Timing(
            registry, "request_decode_seconds", "request_decode_time_seconds", "From the first token to the last."
        )

    def watch_tasks(self, loop: asyncio.AbstractEventLoop) -> None:
        """Show how many tasks the loop has whenever the metrics are read."""
        self._tasks.set_function(lambda: len(asyncio.all_tasks(loop)))

    def note_compile(self, outcome: str, seconds: float) -> None:
        """Count a call of Compile."""
        self._compilations.labels(outcome).inc()
        self._compile_seconds.observe(seconds)

    def note_check(self, outcome: str) -> None:
        """Count an answer that was checked against its schema."""
        self._checks.labels(outcome).inc()

    def change_inflight(self, change: int) -> None:
        """Note that a generating request began (1) or ended (-1)."""
        self.num_inflight += change
        self._inflight.set(self.num_inflight)

    def count(self, record: RequestRecord, route: str, seconds: float) -> None:
        """Count a request that ended; route is the pattern that matched, never the path that was asked for."""
        self._requests.labels(route, record.outcome).inc()
        if record.key_label is not None:
            self._by_key.labels(record.key_label).inc()
        if record.outcome == "cancelled":
            self._disconnections.inc()
        self.num_requests += record.is_generation
        self.num_failed += record.is_generation and record.outcome == "failed"
        if not record.is_generation or record.outcome != "ok":
            return
        self._latency.observe(seconds)
        if record.first_token_at is not None:
            self._first_token.observe(record.first_token_at - record.started)
        self._prefill.observe(record.prefill_seconds)
        self._decode.observe(record.decode_seconds)
