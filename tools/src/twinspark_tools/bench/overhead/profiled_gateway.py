"""`python -m twinspark_tools.bench.overhead.profiled_gateway FILE`: the gateway, profiled from SIGUSR1 to its end.

So that what it costs to start is no part of the profile.
"""

import cProfile
import signal
import sys

from twinspark_gateway.__main__ import main


def run(path: str) -> None:
    """Serve as `python -m twinspark_gateway` does, and write the profile to the file in the end."""
    profile = cProfile.Profile()
    signal.signal(signal.SIGUSR1, lambda _number, _frame: profile.enable())
    try:
        main()
    finally:
        profile.disable()
        profile.dump_stats(path)


if __name__ == "__main__":
    found = sys.argv.pop()
    run(found)
