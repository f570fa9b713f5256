"""Counters and gauges of rank 0. Written by the loop's thread, read by any: each field is one value."""

import enum
from dataclasses import dataclass


class EngineState(enum.Enum):
    """Whether new requests are taken."""

    LOADING = "loading"
    FORMING = "forming"
    SERVING = "serving"
    DRAINING = "draining"


@dataclass(slots=True)
class Stats:
    """Counters since the process started never go down; gauges are those of the last step."""

    num_running: int = 0
    num_waiting: int = 0
    num_prefilling: int = 0
    num_blocks: int = 0
    """KV blocks that requests share."""
    num_used_blocks: int = 0
    """KV blocks that requests hold."""
    requests_total: int = 0
    requests_failed_total: int = 0
    requests_cancelled_total: int = 0
    requests_yielded_total: int = 0
    prompt_tokens_total: int = 0
    output_tokens_total: int = 0
    steps_total: int = 0
    prefill_us_total: int = 0
    decode_us_total: int = 0
    mask_wait_us_total: int = 0
    """Time that the step thread waited for token masks after the logits were there."""
    masked_rows_total: int = 0
    """Rows drawn under a token mask."""
    epochs_total: int = 0
    """Times that the group of ranks was formed."""
    slot_admissions_total: tuple[int, ...] = ()
    """Requests that were given each slot, by slot."""
    last_token_at: float | None = None
    """Clock of the last committed token or, before the first, of the step that began; None while idle."""
