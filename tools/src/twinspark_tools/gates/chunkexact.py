"""chunkexact: a reply does not depend on the chunks that its prompt was cut into.

By URL the chunks cannot be set, so one prompt that is longer than the longest chunk is sent where the scheduler must
cut it differently: alone, beside a decoder, and in one forward with other prompts.
"""

from twinspark_tools.gates.outcome import Outcome, failed, skipped
from twinspark_tools.gates.prompts import draw_prompt
from twinspark_tools.gates.replies import Comparison
from twinspark_tools.gates.server import Ask, Server, ServerInfo
from twinspark_tools.gates.together import decoder

MAX_TOKENS = 16
CELL_TOKENS = 64
"""Chunks end at multiples of so many tokens, or at the prompt's end."""


async def run(server: Server) -> Outcome:
    """The prompt's own log probabilities are compared too, which every chunk has a part in."""
    info = server.info
    longest_chunk = max(info.chunk_tokens_alone, info.chunk_tokens_beside_decoders)
    length = min(longest_chunk * 3 // 2 + 37, info.context_length - MAX_TOKENS)
    if length <= longest_chunk:
        return skipped(f"no prompt longer than a chunk of {longest_chunk} tokens fits the context")
    if info.slots == 1:
        return skipped("with one slot a prompt's chunks are always the same")
    ask = Ask(draw_prompt(info, "chunks", length), MAX_TOKENS, {"temperature": 1, "seed": 1234}, echo=True)
    others = {name: draw_prompt(info, name, size) for name, size in partner_lengths(info, length).items()}
    compared = Comparison()
    alone = await server.complete(ask)
    others_alone = {name: (await server.complete_group(ask, [prompt]))[0] for name, prompt in others.items()}
    async with decoder(server) as decoding:
        compared.add("beside a decoder", alone, await server.complete(ask))
        if decoding.done():
            return failed("the decoder ended before the prompt beside it")
    for name, prompt in others.items():
        other, found = await server.complete_group(ask, [prompt, ask.prompt])
        compared.add(f"grouped with {name}", alone, found)
        compared.add(f"{name}, grouped", others_alone[name], other)
    twins = await server.complete_group(ask, [ask.prompt] * 2)
    for twin in twins:
        compared.add("grouped with itself", alone, twin)
    return compared.outcome(f"replies equal those alone: a prompt of {length} tokens beside a decoder and in groups")


def partner_lengths(info: ServerInfo, length: int) -> dict[str, int]:
    """Shorter prompts, which go first and leave less of the chunk: a short one, and one that counts as long."""
    lengths = {"a short prompt": min(CELL_TOKENS, info.short_prompt_tokens) or CELL_TOKENS}
    if info.short_prompt_tokens + CELL_TOKENS < length:
        lengths["a long prompt"] = info.short_prompt_tokens + CELL_TOKENS
    return lengths
