"""batchexact: a reply does not depend on what else runs, however it is drawn and whoever joins or leaves meanwhile."""

from collections.abc import Mapping, Sequence
from typing import Any

from twinspark_tools.bench.measures import FIRST_ID
from twinspark_tools.gates.outcome import Outcome
from twinspark_tools.gates.prompts import draw_prompt
from twinspark_tools.gates.replies import Comparison
from twinspark_tools.gates.server import GREEDY, Ask, Server, ServerInfo
from twinspark_tools.gates.together import gather_all, join_one_by_one

SAMPLINGS: Sequence[Mapping[str, Any]] = (
    GREEDY,
    {"temperature": 1, "seed": 1234},
    {"temperature": 0, "repetition_penalty": 1.3},
    {"temperature": 0, "frequency_penalty": 1.8},
    {"temperature": 0.8, "top_k": 20, "top_p": 0.9, "seed": 7},
    {"temperature": 1, "frequency_penalty": 0.9, "presence_penalty": 0.6, "seed": 8, "priority": "background"},
    {"temperature": 0, "logit_bias": {str(FIRST_ID + 1): 6.0, str(FIRST_ID + 2): -100.0}},
    {"temperature": 1, "min_p": 0.05, "seed": -9},
    {"temperature": 0.7, "repetition_penalty": 1.1, "logit_bias": {str(FIRST_ID + 3): 4.0}, "min_tokens": 6, "seed": 3},
)
MIN_TOKENS = 10
LENGTHS = (1, 65, 17, 333, 64, 7, 200, 260, 3, 130, 129, 90)
"""Of prompts, in tokens; no common period with the samplings within the requests that are sent."""


async def run(server: Server) -> Outcome:
    """Every request alone; then all, each joining when the one before decodes; then all at once."""
    asks = build_asks(server.info, max(12, 2 * server.info.slots))
    stopping, last = await _build_stopping(server)
    asks = [*stopping, *asks, last]
    # The last one first: what the others leave in their slots must not be in its reply alone too.
    alone = [await server.complete(ask) for ask in reversed(asks)][::-1]
    joined = await join_one_by_one(server, asks)
    at_once = await gather_all(server.complete(ask) for ask in asks)
    compared = Comparison()
    for how, replies in (("joining one by one", joined), ("at once", at_once)):
        for place, (expected, found) in enumerate(zip(alone, replies, strict=True)):
            compared.add(f"request {place} {how}, {dict(asks[place].sampling)}", expected, found)
    return compared.outcome(f"replies equal those alone: {len(asks)} requests joining one by one, and at once")


def build_asks(info: ServerInfo, count: int) -> list[Ask]:
    """Requests of mixed lengths and sampling, which end at different times."""
    asks = []
    for place in range(count):
        max_tokens = 8 + 6 * (place % 4)
        length = min(LENGTHS[place % len(LENGTHS)], info.context_length - max_tokens)
        prompt = draw_prompt(info, f"batch {place}", length)
        asks.append(Ask(prompt, max_tokens, SAMPLINGS[place % len(SAMPLINGS)]))
    return asks


async def _build_stopping(server: Server) -> tuple[list[Ask], Ask]:
    """For every slot a request with stop ids; and one that draws these ids while its own ends are masked."""
    info = server.info
    prompt = draw_prompt(info, "min tokens", min(40, info.context_length - 2 * MIN_TOKENS))
    last = Ask(prompt, 2 * MIN_TOKENS, {"temperature": 0, "min_tokens": MIN_TOKENS})
    stops = sorted(set((await server.complete(last)).token_ids))
    stopping = {"temperature": 1, "stop_token_ids": stops, "min_tokens": 2}
    prompts = [draw_prompt(info, f"stops {slot}", 5 + slot) for slot in range(info.slots)]
    return [Ask(prompt, MIN_TOKENS, {**stopping, "seed": slot}) for slot, prompt in enumerate(prompts)], last
