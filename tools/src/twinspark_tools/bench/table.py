"""The benchmark's report as a table for people."""

from collections.abc import Mapping
from typing import Any


def format_report(report: Mapping[str, Any]) -> str:
    """Measures, then memory, then where it ran."""
    machine = report["machine"]
    lines = [f"{'measure':<24}{'tokens/s':>10}{'first token':>14}   more"]
    lines += [_measure_line(record) for record in report["measures"]]
    if report["processes"]:
        lines += ["", f"{'process':<24}{'resident':>10}{'cpu':>14}   torch loaded"]
        lines += [_process_line(record) for record in report["processes"]]
    lines += ["", f"{machine['cpu']}, {machine['cores']} cores, load {machine['load_average']:.1f}"]
    lines += [f"model {report['model']}, {report['fingerprint']}", f"commit {report['commit'] or 'unknown'}"]
    return "\n".join(lines)


def _measure_line(record: Mapping[str, Any]) -> str:
    if "error" in record:
        return f"{record['measure']:<24}{record['error']}"
    rate = f"{record['tokens_per_second']:.1f}" if "tokens_per_second" in record else ""
    first = f"{record['first_token_ms']:.0f} ms" if "first_token_ms" in record else ""
    shown = {"measure", "tokens_per_second", "first_token_ms"}
    more = ", ".join(f"{name} {_number(value)}" for name, value in record.items() if name not in shown)
    return f"{record['measure']:<24}{rate:>10}{first:>14}   {more}"


def _process_line(record: Mapping[str, Any]) -> str:
    resident = f"{record['resident_bytes'] / 2**20:.0f} MiB"
    has_torch = "yes" if record["has_torch"] else "no"
    return f"{record['process']:<24}{resident:>10}{record['cpu_seconds']:>12.0f} s   {has_torch}"


def _number(value: Any) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)
