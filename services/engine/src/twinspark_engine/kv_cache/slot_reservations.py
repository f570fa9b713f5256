"""Cache space reserved by slot: each slot holds one request of at most the context's length, reserved in full."""


class SlotReservations:
    """Called by the scheduler only. `can_x` asks, `x` does and cannot fail after `can_x`."""

    def __init__(self, num_slots: int, context_tokens: int) -> None:
        self._context_tokens = context_tokens
        self._tokens_by_slot = [0] * num_slots

    def can_ever_reserve(self, num_tokens: int) -> bool:
        """Whether an empty engine could hold a request of this many tokens."""
        return 0 < num_tokens <= self._context_tokens

    def can_reserve(self, num_tokens: int) -> bool:
        """Whether a slot is free for a request of this many tokens."""
        return self.can_ever_reserve(num_tokens) and 0 in self._tokens_by_slot

    def reserve(self, num_tokens: int) -> int:
        """Take the lowest free slot and return it. Raises ValueError where can_reserve is false."""
        if not self.can_ever_reserve(num_tokens):
            raise ValueError(f"{num_tokens} tokens do not fit a slot of {self._context_tokens}")
        slot = self._tokens_by_slot.index(0)
        self._tokens_by_slot[slot] = num_tokens
        return slot

    def release(self, slot: int) -> None:
        """Give a slot back. Raises ValueError if it is free."""
        if self._tokens_by_slot[slot] == 0:
            raise ValueError(f"slot {slot} is free")
        self._tokens_by_slot[slot] = 0

    @property
    def num_reserved_tokens(self) -> int:
        """Tokens reserved over all slots."""
        return sum(self._tokens_by_slot)

    @property
    def num_free_slots(self) -> int:
        """Slots that hold no request."""
        return self._tokens_by_slot.count(0)
