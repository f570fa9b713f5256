"""Reads a cProfile file: the time of each package, the functions that took most, and so the next bottleneck."""

import pstats
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

_PACKAGES = tuple(re.compile(rf"{place}/([\w.]+)") for place in ("site-packages", "src", r"python3\.\d+"))


def read_profile(path: Path, num_functions: int = 15) -> tuple[list[tuple[str, float]], list[tuple[str, float]]]:
    """Give (package, share of the time) and (function, share), largest first. Builtins belong to their callers."""
    entries: dict[tuple[str, int, str], Any] = pstats.Stats(str(path)).stats  # type: ignore[attr-defined]
    packages: dict[str, float] = defaultdict(float)
    functions: dict[str, float] = defaultdict(float)
    for (file, _, name), (_, _, own_seconds, _, callers) in entries.items():
        if file == "~":
            for (caller_file, _, _), (_, _, seconds, _) in callers.items():
                packages[name_package(caller_file)] += seconds
        else:
            packages[name_package(file)] += own_seconds
        where = name if file == "~" else f"{name_package(file)}/{Path(file).name} {name}"
        functions[where] += own_seconds
    total = sum(packages.values()) or 1.0
    return _shares(packages, total), _shares(functions, total)[:num_functions]


def name_package(file: str) -> str:
    """Give the package of a source file."""
    for pattern in _PACKAGES:
        found = pattern.search(file)
        if found is not None:
            return found[1].removesuffix(".py")
    return "builtin"


def _shares(seconds: dict[str, float], total: float) -> list[tuple[str, float]]:
    return sorted(((name, part / total) for name, part in seconds.items()), key=lambda pair: -pair[1])
