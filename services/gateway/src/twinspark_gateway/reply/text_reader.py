"""What reads output tokens as text, and the reader of completions, which are raw text."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from twinspark_gateway.generation import TokenLogprob
from twinspark_gateway.prompt.detokenizer import Detokenizer
from twinspark_gateway.prompt.tokenizer import Tokenizer
from twinspark_gateway.reply.answer_text import AnswerText, PlacedLogprob


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the reply makes."""

    # Among the calls of the reply, from 0 on.
    index: int
    # Unique over all replies.
    id: str
    name: str
    # A JSON object.
    arguments: str


@dataclass(slots=True)
class SafeText:
    """What became safe to send: text, with the entries of the visible tokens that it came from, and calls."""

    reasoning: str = ""
    content: str = ""
    logprobs: list[PlacedLogprob] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)

    def add(self, other: "SafeText") -> None:
        """Append what followed."""
        self.reasoning += other.reasoning
        self.content += other.content
        self.logprobs += other.logprobs
        self.calls += other.calls


class TextReader(Protocol):
    """Reads the output tokens of one reply, in order."""

    @property
    def matched_stop(self) -> str | None:
        """The stop string that ended the text; once set, nothing more may be taken."""
        ...

    @property
    def num_reasoning_tokens(self) -> int:
        """Tokens of the reasoning so far, its closing token included."""
        ...

    @property
    def num_calls(self) -> int:
        """Calls so far."""
        ...

    def take(self, token_id: int, logprob: TokenLogprob | None, *, may_stop: bool = True) -> SafeText:
        """Take a token that does not end the output. Without may_stop it completes no stop string."""
        ...

    def would_reason(self, token_id: int) -> bool:
        """Say whether the token, if taken next, belongs to a reasoning that is open and does not close it."""
        ...

    def take_forced(self, token_id: int) -> SafeText:
        """Take a token that the model did not write. What it had begun of a character before it is dropped."""
        ...

    def end(self, token_id: int | None, logprob: TokenLogprob | None) -> SafeText:
        """End the text; token_id is the end token or stop id that ended it, None where a limit did."""
        ...


class CompletionReader:
    """Completions: raw text; every output token is listed, also one without text. Works without a tokenizer."""

    num_reasoning_tokens = 0
    num_calls = 0

    def __init__(self, tokenizer: Tokenizer | None, stops: Sequence[str], *, skip_special_tokens: bool) -> None:
        self._tokenizer = tokenizer
        self._text = AnswerText(stops)
        self._detokenizer = Detokenizer()
        self._skip_special_tokens = skip_special_tokens

    @property
    def matched_stop(self) -> str | None:
        """See TextReader."""
        return self._text.matched_stop

    def take(self, token_id: int, logprob: TokenLogprob | None, *, may_stop: bool = True) -> SafeText:
        """See TextReader."""
        content, entries = self._text.take(self._text_of(token_id), token_id, logprob, may_stop=may_stop)
        return SafeText(content=content, logprobs=entries)

    def would_reason(self, token_id: int) -> bool:
        """See TextReader; nothing here is reasoning."""
        return False

    def take_forced(self, token_id: int) -> SafeText:
        """See TextReader."""
        self._detokenizer = Detokenizer()
        return self.take(token_id, None, may_stop=False)

    def end(self, token_id: int | None, logprob: TokenLogprob | None) -> SafeText:
        """See TextReader."""
        text = SafeText()
        if token_id is not None:
            text.content, text.logprobs = self._text.take("", token_id, logprob, may_stop=False)
        content, entries = self._text.flush()
        text.add(SafeText(content=content, logprobs=entries))
        return text

    def _text_of(self, token_id: int) -> str:
        if self._tokenizer is None or (self._skip_special_tokens and self._tokenizer.is_special(token_id)):
            return ""
        return self._detokenizer.feed(self._tokenizer.token_bytes(token_id))
