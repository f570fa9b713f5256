"""Closes a reasoning that is too long: by the count of the reply's tokens alone, so that no draft changes where."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from twinspark_gateway.generation import Generation
from twinspark_gateway.prompt.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class ThinkingBudget:
    """If the reply's token of this number, from 1 on, still reasons, the closing ids stand in its place."""

    num_tokens: int
    closing_token_ids: Sequence[int]


def build_budget(num_tokens: int, tokenizer: Tokenizer) -> ThinkingBudget | None:
    """Give the budget; None for 0, or where the tokenizer knows no reasoning."""
    if not num_tokens or tokenizer.think_tokens() is None:
        return None
    closing = tokenizer.encode_segments([("\n", False), ("</think>", True), ("\n\n", False)])
    return ThinkingBudget(num_tokens, closing)


def go_on(generation: Generation, output_token_ids: Sequence[int]) -> Generation | None:
    """Give the call that goes on after this output, forced ids among it; None where its limit is reached.

    To the engine the output is prompt; what depends on counts of output, and a derived seed, stays as it was.
    """
    num_left = generation.max_tokens - len(output_token_ids)
    if num_left < 1:
        return None
    grammar = generation.grammar
    return replace(
        generation,
        # The first call may still run while it is being cancelled.
        request_id=f"{generation.request_id}-2",
        prompt_token_ids=[*generation.prompt_token_ids, *output_token_ids],
        max_tokens=num_left,
        num_prior_output_tokens=len(output_token_ids),
        # The reasoning is over.
        grammar=replace(grammar, starts_after_thinking=False) if grammar is not None else None,
    )
