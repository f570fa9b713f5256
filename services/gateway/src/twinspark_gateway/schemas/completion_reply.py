"""The reply of POST /v1/completions, whole and in chunks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from twinspark_gateway.generation import TokenLogprob
from twinspark_gateway.prompt.detokenizer import Detokenizer
from twinspark_gateway.reply.answer_text import PlacedLogprob
from twinspark_gateway.reply.choice import Delta, Ended
from twinspark_gateway.reply.usage import Usage
from twinspark_gateway.schemas.chat_reply import ChoiceTotal, ReplyHead, describe_end
from twinspark_gateway.schemas.logprobs import CompletionLogprobs, TokenNames

_KIND = "text_completion"


@dataclass(frozen=True, slots=True)
class EchoedPrompt:
    """A prompt that the reply repeats: its text, and where each token's text starts in it."""

    text: str
    token_ids: Sequence[int]
    offsets: Sequence[int]


def echo_prompt(token_ids: Sequence[int], names: TokenNames, *, has_text: bool) -> EchoedPrompt:
    """Give the prompt's text, special tokens included; bytes that are no UTF-8 become U+FFFD."""
    if not has_text:
        return EchoedPrompt("", token_ids, [0] * len(token_ids))
    detokenizer, offsets, parts, length = Detokenizer(), [], [], 0
    for token_id in token_ids:
        offsets.append(length)
        parts.append(detokenizer.feed(names.raw(token_id)))
        length += len(parts[-1])
    parts.append(detokenizer.finish())
    return EchoedPrompt("".join(parts), token_ids, offsets)


@dataclass(frozen=True, slots=True)
class CompletionReply:
    """Builds the objects of one reply to a completion request."""

    head: ReplyHead
    names: TokenNames
    with_logprobs: bool
    with_token_ids: bool
    # Chunks carry running counts.
    with_usage: bool

    def echo_chunk(self, index: int, prompt: EchoedPrompt, logprobs: Sequence[TokenLogprob | None]) -> dict[str, Any]:
        """Give the chunk that repeats the prompt, which counts the prompt only: the choice may have run on."""
        chunk = self._chunk(index, prompt.text, Usage(len(prompt.token_ids)))
        if self.with_logprobs:
            chunk["choices"][0]["logprobs"] = self._logprobs(prompt, logprobs, ()).to_json()
        return chunk

    def delta_chunk(self, delta: Delta, text_start: int) -> dict[str, Any] | None:
        """Give the chunk of one step; None where it has nothing that is wanted. text_start: echoed characters."""
        entries = delta.logprobs if self.with_logprobs else ()
        if not delta.content and not entries and not (self.with_token_ids and delta.token_ids):
            return None
        chunk = self._chunk(delta.index, delta.content, delta.usage)
        if entries:
            chunk["choices"][0]["logprobs"] = self._logprobs(None, (), entries, text_start).to_json()
        if self.with_token_ids:
            chunk["choices"][0]["token_ids"] = list(delta.token_ids)
        return chunk

    def finish_chunk(self, ended: Ended) -> dict[str, Any]:
        """Give the last chunk of a choice."""
        chunk = self._chunk(ended.index, "", ended.usage)
        chunk["choices"][0] |= describe_end(ended)
        return chunk

    def usage_chunk(self, usage: Usage) -> dict[str, Any]:
        """Give the chunk after all choices."""
        return self.head.to_json(_KIND) | {"choices": [], "usage": usage.to_json()}

    def whole_choice(
        self,
        index: int,
        total: ChoiceTotal,
        prompt: EchoedPrompt | None,
        prompt_logprobs: Sequence[TokenLogprob | None],
    ) -> dict[str, Any]:
        """Give one choice of the reply that is not streamed; prompt is None without echo."""
        start = len(prompt.text) if prompt is not None else 0
        choice: dict[str, Any] = {
            "index": index,
            "text": (prompt.text if prompt is not None else "") + total.content,
            "logprobs": None,
            **describe_end(total.ended),
        }
        if self.with_logprobs:
            choice["logprobs"] = self._logprobs(prompt, prompt_logprobs, total.logprobs, start).to_json()
        return choice | ({"token_ids": total.token_ids} if self.with_token_ids else {})

    def whole(self, choices: Sequence[dict[str, Any]], usage: Usage) -> dict[str, Any]:
        """Give the reply that is not streamed."""
        return self.head.to_json(_KIND) | {"choices": list(choices), "usage": usage.to_json()}

    def _logprobs(
        self,
        prompt: EchoedPrompt | None,
        prompt_logprobs: Sequence[TokenLogprob | None],
        entries: Sequence[PlacedLogprob],
        text_start: int = 0,
    ) -> CompletionLogprobs:
        result = CompletionLogprobs(self.names)
        if prompt is not None:
            for token_id, logprob, offset in zip(prompt.token_ids, prompt_logprobs, prompt.offsets, strict=True):
                result.add(token_id, logprob, offset)
        for entry in entries:
            result.add(entry.token_id, entry.logprob, text_start + entry.offset)
        return result

    def _chunk(self, index: int, text: str, usage: Usage) -> dict[str, Any]:
        choice = {"index": index, "text": text, "logprobs": None, "finish_reason": None}
        chunk = self.head.to_json(_KIND) | {"choices": [choice]}
        return chunk | ({"usage": usage.to_json()} if self.with_usage else {})
