"""Becomes a program that dies with its parent: `python -m twinspark_tools.launch.child SPEC.json`.

The file holds `argv`, `environment` (added to ours) and `death_signal`, which the kernel sends when the parent ends in
whatever way. Used for supervisord under the launcher, and for each service under supervisord. Linux only.
"""

import ctypes
import json
import os
import sys
from pathlib import Path

PR_SET_PDEATHSIG = 1
PARENT_VARIABLE = "LAUNCH_PARENT_PID"
"""Process id that must be our parent. Without it a parent that ended before the kernel was asked would be missed."""


def main() -> None:
    """Ask the kernel, check that the parent still lives, become the program."""
    spec = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    parent = int(os.environ.pop(PARENT_VARIABLE))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, int(spec["death_signal"]), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:
        sys.exit(f"the parent process {parent} is gone")
    os.environ.update(spec["environment"])
    if spec["is_parent"]:
        os.environ[PARENT_VARIABLE] = str(os.getpid())
    argv = spec["argv"]
    os.execv(argv[0], argv)


if __name__ == "__main__":
    main()
