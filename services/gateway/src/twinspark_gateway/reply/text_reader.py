"""Reads output tokens as text: a chat reply splits into reasoning and answer, a completion is raw text."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from twinspark_gateway.generation import TokenLogprob
from twinspark_gateway.prompt.detokenizer import Detokenizer
from twinspark_gateway.prompt.reasoning import Part, ReasoningSplitter
from twinspark_gateway.prompt.tokenizer import Tokenizer
from twinspark_gateway.reply.answer_text import AnswerText, PlacedLogprob

# The next speaker's marker: the model writes it at times, and it is never text of a chat reply.
ASSISTANT_MARKER = "<|assistant|>"


@dataclass(slots=True)
class SafeText:
    """Text that became safe to send, with the entries of the visible tokens that it came from."""

    reasoning: str = ""
    content: str = ""
    logprobs: list[PlacedLogprob] = field(default_factory=list)

    def add(self, other: "SafeText") -> None:
        """Append what followed."""
        self.reasoning += other.reasoning
        self.content += other.content
        self.logprobs += other.logprobs


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

    def take(self, token_id: int, logprob: TokenLogprob | None, *, may_stop: bool = True) -> SafeText:
        """Take a token that does not end the output. Without may_stop it completes no stop string."""
        ...

    def end(self, token_id: int | None, logprob: TokenLogprob | None) -> SafeText:
        """End the text; token_id is the end token or stop id that ended it, None where a limit did."""
        ...


class ChatReader:
    """Chat: reasoning and answer apart; stop strings and log probabilities concern the answer only."""

    def __init__(
        self, tokenizer: Tokenizer, prompt_token_ids: Sequence[int], stops: Sequence[str], *, skip_special_tokens: bool
    ) -> None:
        self._tokenizer = tokenizer
        self._splitter = ReasoningSplitter(tokenizer.think_tokens(), prompt_token_ids)
        self._answer = AnswerText(stops)
        self._detokenizers = {Part.REASONING: Detokenizer(), Part.ANSWER: Detokenizer()}
        self._skip_special_tokens = skip_special_tokens
        self._assistant = tokenizer.id_of(ASSISTANT_MARKER)
        self._is_answer_empty = True

    @property
    def matched_stop(self) -> str | None:
        """See TextReader."""
        return self._answer.matched_stop

    @property
    def num_reasoning_tokens(self) -> int:
        """See TextReader."""
        return self._splitter.num_reasoning_tokens

    def take(self, token_id: int, logprob: TokenLogprob | None, *, may_stop: bool = True) -> SafeText:
        """See TextReader."""
        part = self._splitter.place(token_id)
        if part is Part.MARKUP or self._is_hidden(token_id):
            return SafeText()
        text = self._detokenizers[part].feed(self._tokenizer.token_bytes(token_id))
        if part is Part.REASONING:
            return SafeText(reasoning=text)
        if self._is_answer_empty and self.num_reasoning_tokens and text:
            # The line break between reasoning and answer is layout.
            text = text.lstrip("\n")
            if not text:
                return SafeText()
        self._is_answer_empty = self._is_answer_empty and not text
        content, entries = self._answer.take(text, token_id, logprob, may_stop=may_stop)
        return SafeText(content=content, logprobs=entries)

    def end(self, token_id: int | None, logprob: TokenLogprob | None) -> SafeText:
        """See TextReader; the token that ended a chat reply is not listed."""
        content, entries = self._answer.flush()
        return SafeText(content=content, logprobs=entries)

    def _is_hidden(self, token_id: int) -> bool:
        if token_id == self._assistant:
            return True
        return self._skip_special_tokens and self._tokenizer.is_special(token_id)


class CompletionReader:
    """Completions: raw text; every output token is listed, also one without text. Works without a tokenizer."""

    num_reasoning_tokens = 0

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
