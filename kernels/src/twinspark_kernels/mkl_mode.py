"""The mode in which MKL's sums do not follow the number of threads, on processors where it has one."""

from pathlib import Path

VARIABLE = "MKL_CBWR"
STRICT = "AUTO,STRICT"
CPU_INFO = Path("/proc/cpuinfo")


def choose_mode(cpu_info: Path = CPU_INFO) -> str | None:
    """Value for MKL_CBWR on this machine; None: leave MKL as it is.

    MKL documents its strict mode for Intel processors alone; on an AMD EPYC it was never seen to need one.
    """
    is_intel = cpu_info.exists() and "GenuineIntel" in cpu_info.read_text(encoding="utf-8", errors="replace")
    return STRICT if is_intel else None
