"""Resident memory of the server's processes, where `make run` started it on this machine from this folder."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil

from twinspark_tools.launch.run_folder import RUN_FILE, run_folder_of

LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")


def measure_processes(base_url: str) -> list[dict[str, Any]]:
    """One record for each process and what it started; empty if the server is elsewhere or was started otherwise."""
    address = urlsplit(base_url)
    if address.hostname not in LOCAL_HOSTS or address.port is None:
        return []
    try:
        content = json.loads((run_folder_of(address.port) / RUN_FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    records = []
    for name, pid in sorted(content["pids"].items()):
        process = psutil.Process(pid)
        records.append(_measure(name, process))
        records += [_measure(f"{name}, child", child) for child in process.children(recursive=True)]
    return records


def _measure(name: str, process: psutil.Process) -> dict[str, Any]:
    return {
        "process": name,
        "resident_bytes": process.memory_info().rss,
        "threads": process.num_threads(),
        "cpu_seconds": sum(process.cpu_times()[:2]),
        "has_torch": "libtorch" in Path(f"/proc/{process.pid}/maps").read_text(encoding="utf-8"),
    }
