"""An engine rank into which faults are planted while it serves: `python faulty_engine.py`, settings as usual.

In FAULT_FOLDER the file `wanted` holds the name of one of GATE_FAULTS, or nothing. Once that fault is planted, and any
other taken out, the file `planted` says the same.
"""

import os
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.gate_faults import GATE_FAULTS
from support.planted_fault import planted
from twinspark_engine.__main__ import main

POLL_SECONDS = 0.02


def keep_planted(folder: Path) -> None:
    """Never returns. Raises AssertionError for a fault whose text is gone: nothing is planted any more then."""
    faults = {case.fault.name: case.fault for case in GATE_FAULTS}
    current = ""
    with ExitStack() as stack:
        while True:
            wanted = (folder / "wanted").read_text()
            if wanted != current:
                stack.close()
                if wanted:
                    stack.enter_context(planted(faults[wanted]))
                current = wanted
                draft = folder / "draft"
                draft.write_text(current)
                draft.replace(folder / "planted")
            time.sleep(POLL_SECONDS)


if __name__ == "__main__":
    threading.Thread(target=keep_planted, args=(Path(os.environ["FAULT_FOLDER"]),), daemon=True).start()
    sys.exit(main())
