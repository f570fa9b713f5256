"""Where and with what a benchmark ran."""

import importlib.metadata
import os
import platform
import subprocess
from typing import Any

import psutil

PACKAGES = ("torch", "openai", "grpcio", "twinspark-engine", "twinspark-gateway", "twinspark-kernels")


def describe_machine() -> dict[str, Any]:
    """Processor, cores, memory, system."""
    return {
        "cpu": _cpu_name(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": psutil.virtual_memory().total,
        "system": platform.platform(),
        "load_average": os.getloadavg()[0],
    }


def describe_versions() -> dict[str, str]:
    """Versions of what is installed beside this program, which on one machine is what serves."""
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return versions


def find_commit() -> str:
    """Commit of the working directory, with `+changes` if files differ from it; empty outside a checkout."""
    commit = _git("rev-parse", "HEAD")
    return f"{commit}+changes" if commit and _git("status", "--porcelain", "--untracked-files=no") else commit


def _git(*arguments: str) -> str:
    try:
        ended = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return ended.stdout.strip() if ended.returncode == 0 else ""


def _cpu_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor()
