"""How the time of steps is shared between decode and the long prompts computed beside it.

After t seconds of prefill the slots that decode are owed t * share / (1 - share) seconds, and long prompts wait until
that is paid. The times come with the results of steps; they move the step in which a chunk runs, never a bit of it.
"""


class DecodeShare:
    """Booked by the scheduler only."""

    def __init__(self, share: float) -> None:
        """share: 0 (nothing is owed) to below 1. Raises ValueError outside."""
        if not 0 <= share < 1:
            raise ValueError(f"the share of decode must be 0 to below 1, not {share}")
        self._ratio = share / (1 - share)
        self._owed_us = 0.0

    @property
    def is_owed(self) -> bool:
        """Whether long prompts wait for decode."""
        return self._owed_us > 0

    def book(self, prefill_us: float, decode_us: float) -> None:
        """A step in which slots decoded ended: time spent on long prompts, and on decode.

        Each such step pays something, so that a clock that stands still holds nobody up for ever. Nothing is saved up.
        """
        self._owed_us = max(0.0, self._owed_us + prefill_us * self._ratio - max(decode_us, 1.0))

    def forgive(self) -> None:
        """Nobody is left that decodes."""
        self._owed_us = 0.0
