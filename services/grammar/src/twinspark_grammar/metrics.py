"""Prometheus metrics of the service, made from its Stats when scraped; names as in docs/metrics.md."""

from collections.abc import Callable, Iterator

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from twinspark_grammar.stats import Stats

COUNTERS: dict[str, tuple[str, Callable[[Stats], float]]] = {
    "twinspark_grammar_compiled_grammars": ("Grammars compiled.", lambda s: s.compiled_total),
    "twinspark_grammar_cache_hits": ("Grammars found compiled.", lambda s: s.compile_cache_hits_total),
    "twinspark_grammar_evicted_grammars": ("Compiled grammars dropped for others.", lambda s: s.evicted_total),
    "twinspark_grammar_refused_grammars": ("Grammars refused.", lambda s: s.refused_total),
    "twinspark_grammar_killed_compilations": (
        "Compilations killed at a limit of time or memory.",
        lambda s: s.killed_total,
    ),
    "twinspark_grammar_compiler_restarts": (
        "Times that the compiler process was started again.",
        lambda s: s.compiler_restarts_total,
    ),
    "twinspark_grammar_compile_seconds": ("Time spent compiling.", lambda s: s.compile_us_total / 1e6),
    "twinspark_grammar_masks": ("Masks computed, one for each row.", lambda s: s.masks_total),
    "twinspark_grammar_mask_seconds": ("Time spent computing masks.", lambda s: s.mask_us_total / 1e6),
}
"""Name without the suffix _total, which the exposition adds: help text and value."""

GAUGES: dict[str, tuple[str, Callable[[Stats], float]]] = {
    "twinspark_grammar_open_streams": ("Open Mask streams.", lambda s: s.num_streams),
    "twinspark_grammar_compilations": ("Compilations that run or wait.", lambda s: s.num_compiling),
    "twinspark_grammar_cache_bytes": ("Bytes of compiled grammars in the cache.", lambda s: s.cache_bytes),
}


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
