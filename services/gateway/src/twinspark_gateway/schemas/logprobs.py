"""The log probability objects of replies."""

from collections.abc import Sequence
from typing import Any

from twinspark_gateway.generation import TokenLogprob
from twinspark_gateway.prompt.tokenizer import Tokenizer
from twinspark_gateway.reply.answer_text import PlacedLogprob


class TokenNames:
    """Names tokens in replies. Without a tokenizer a token is named token_id:N."""

    def __init__(self, tokenizer: Tokenizer | None) -> None:
        self._tokenizer = tokenizer

    def text(self, token_id: int) -> str:
        """Give the token's text, U+FFFD for what is no whole character."""
        return self.raw(token_id).decode(errors="replace")

    def raw(self, token_id: int) -> bytes:
        """Give the token's bytes."""
        if self._tokenizer is None:
            return f"token_id:{token_id}".encode()
        return self._tokenizer.token_bytes(token_id)

    def key(self, token_id: int) -> str:
        """Give a text that differs between tokens: parts of characters are spelled bytes:\\xNN."""
        raw = self.raw(token_id)
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in raw)
        return text or f"token_id:{token_id}"


def chat_logprobs(entries: Sequence[PlacedLogprob], names: TokenNames) -> dict[str, Any]:
    """Give the object `logprobs` of a chat choice."""

    def describe(token_id: int, logprob: float) -> dict[str, Any]:
        return {"token": names.text(token_id), "logprob": logprob, "bytes": list(names.raw(token_id))}

    content = []
    for entry in entries:
        top = [describe(token_id, logprob) for token_id, logprob in entry.logprob.top]
        content.append(describe(entry.token_id, entry.logprob.logprob) | {"top_logprobs": top})
    return {"content": content, "refusal": None}


class CompletionLogprobs:
    """The object `logprobs` of a completion choice, or of one chunk of it: four lists of one length."""

    def __init__(self, names: TokenNames) -> None:
        self._names = names
        self._tokens: list[str] = []
        self._token_logprobs: list[float | None] = []
        self._top_logprobs: list[dict[str, float] | None] = []
        self._text_offset: list[int] = []

    def add(self, token_id: int, logprob: TokenLogprob | None, offset: int) -> None:
        """Append a token; offset counts characters of the returned text. The token itself is among its alternatives."""
        self._tokens.append(self._names.key(token_id))
        self._text_offset.append(offset)
        self._token_logprobs.append(None if logprob is None else logprob.logprob)
        if logprob is None:
            self._top_logprobs.append(None)
            return
        top = {self._names.key(top_id): value for top_id, value in logprob.top}
        top.setdefault(self._tokens[-1], logprob.logprob)
        self._top_logprobs.append(top)

    def to_json(self) -> dict[str, Any]:
        """Give the object."""
        return {
            "tokens": self._tokens,
            "token_logprobs": self._token_logprobs,
            "top_logprobs": self._top_logprobs,
            "text_offset": self._text_offset,
        }
