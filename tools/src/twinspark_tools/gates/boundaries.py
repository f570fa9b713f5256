"""boundaries: prompts that end on and around the boundaries of pools, cells, blocks and chunks.

A prompt's reply is compared with its reply in a group. That its own log probabilities equal those of a prompt that
goes on says that where a prompt ends changes nothing before.
"""

from twinspark_tools.gates.outcome import Outcome
from twinspark_tools.gates.prompts import draw_prompt
from twinspark_tools.gates.replies import Comparison, Reply
from twinspark_tools.gates.server import Ask, Server, ServerInfo

MAX_TOKENS = 6
"""Output tokens that decode over the boundary behind the prompt."""
CELL_TOKENS = 64


async def run(server: Server) -> Outcome:
    """Alone; as the beginning of a longer prompt; then in groups of one prompt a slot."""
    info = server.info
    lengths = boundary_lengths(info)
    text = draw_prompt(info, "boundaries", lengths[-1] + CELL_TOKENS)
    ask = Ask(text, MAX_TOKENS, echo=True)
    compared = Comparison()
    longest = (await server.complete(Ask(text[: info.context_length - MAX_TOKENS], MAX_TOKENS, echo=True))).scores
    alone: dict[int, Reply] = {}
    for length in lengths:
        reply = alone[length] = (await server.complete_group(ask, [text[:length]]))[0]
        begun = Reply((), longest[:length], None)
        compared.add(f"{length} tokens of a longer prompt", begun, Reply((), reply.scores[:length], None))
    for first in range(0, len(lengths), info.slots):
        # Lengths far from each other, so that the members of a group end in different places.
        members = lengths[first // info.slots :: -(-len(lengths) // info.slots)]
        grouped = await server.complete_group(ask, [text[:length] for length in members])
        for length, found in zip(members, grouped, strict=True):
            compared.add(f"a prompt of {length} tokens in a group", alone[length], found)
    return compared.outcome(f"replies equal: prompts of {lengths[0]} to {lengths[-1]} tokens, alone and in groups")


def boundary_lengths(info: ServerInfo) -> list[int]:
    """Ascending lengths that the window holds: one before, on and one behind each boundary."""
    pool, block = info.pool_tokens, info.block_tokens
    boundaries = {pool, 5 * pool, CELL_TOKENS, block, info.chunk_tokens_alone}
    boundaries.add(info.chunk_tokens_beside_decoders)
    lengths = {boundary + offset for boundary in boundaries for offset in (-1, 0, 1)}
    return sorted(length for length in lengths if 1 < length <= info.context_length - MAX_TOKENS)
