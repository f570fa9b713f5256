"""lone-slot: one prompt sent alone gets the same tokens in every slot. Its times are told, and judge nothing."""

import time

from twinspark_tools.gates.gauges import read_gauges
from twinspark_tools.gates.outcome import Outcome, failed
from twinspark_tools.gates.prompts import draw_prompt
from twinspark_tools.gates.replies import Comparison, Reply
from twinspark_tools.gates.server import Ask, Server

PROMPT_TOKENS = 384
MAX_TOKENS = 16
VISITS = 2
"""Of each slot: the second finds what the same prompt left there."""
PATIENCE = 4
"""Requests at most, for each visit of each slot."""


async def run(server: Server) -> Outcome:
    """Which slot served is read off the counts in /metrics, where somebody else's request shows, and fails the gate."""
    info = server.info
    prompt = draw_prompt(info, "lone slot", min(PROMPT_TOKENS, info.context_length - MAX_TOKENS))
    ask = Ask(prompt, MAX_TOKENS, echo=True)
    compared = Comparison()
    expected: Reply | None = None
    times: dict[int, list[str]] = {slot: [] for slot in range(info.slots)}
    counts = first_counts = (await read_gauges(server)).slot_admissions
    for _ in range(PATIENCE * VISITS * info.slots):
        started = time.monotonic()
        reply = await server.complete(ask)
        seconds = time.monotonic() - started
        before, counts = counts, (await read_gauges(server)).slot_admissions
        if sum(counts) != sum(before) + 1:
            return failed("others use the server meanwhile, so this prompt was not alone")
        served = [slot for slot in times if counts[slot] > before[slot]]
        for slot in served:
            times[slot].append(f"{1000 * seconds:.0f}")
        if expected is not None:
            compared.add(f"slot {', '.join(map(str, served))}", expected, reply)
        expected = expected or reply
        if all(count >= first + VISITS for count, first in zip(counts, first_counts, strict=True)):
            told = "; ".join(f"slot {slot}: {', '.join(parts)} ms" for slot, parts in times.items())
            return compared.outcome(f"replies equal the first, {VISITS} in each slot: {told}")
    missing = [str(slot) for slot in times if counts[slot] < first_counts[slot] + VISITS]
    return failed(f"slots {', '.join(missing)} did not serve {VISITS} of {PATIENCE * VISITS * info.slots} requests")
