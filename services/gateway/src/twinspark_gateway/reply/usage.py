"""Token counts of a reply."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Usage:
    """Counts of one choice, or of all choices of a request together."""

    prompt_tokens: int
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    def to_json(self) -> dict[str, Any]:
        """Give the object `usage` of a reply."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": self.prompt_tokens + self.completion_tokens,
            "prompt_tokens_details": {"cached_tokens": self.cached_tokens},
            "completion_tokens_details": {"reasoning_tokens": self.reasoning_tokens},
        }


def sum_usage(groups: Iterable[Iterable[Usage]]) -> Usage:
    """Add up the choices of each prompt: its tokens count once, output tokens for every choice."""
    prompt = cached = completion = reasoning = 0
    for group in groups:
        usages = list(group)
        prompt += max((usage.prompt_tokens for usage in usages), default=0)
        cached += max((usage.cached_tokens for usage in usages), default=0)
        completion += sum(usage.completion_tokens for usage in usages)
        reasoning += sum(usage.reasoning_tokens for usage in usages)
    return Usage(prompt, completion, cached, reasoning)
