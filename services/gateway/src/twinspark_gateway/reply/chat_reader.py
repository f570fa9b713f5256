"""Reads a chat reply: reasoning, answer and tool calls apart.

Stop strings and log probabilities concern the answer only.
"""

import uuid
from collections.abc import Sequence

from twinspark_gateway.generation import TokenLogprob
from twinspark_gateway.prompt.detokenizer import Detokenizer
from twinspark_gateway.prompt.reasoning import Part, ReasoningSplitter
from twinspark_gateway.prompt.tokenizer import Tokenizer
from twinspark_gateway.reply.answer_text import AnswerText
from twinspark_gateway.reply.text_reader import SafeText, ToolCall
from twinspark_gateway.tools.offer import ToolChoice, ToolOffer
from twinspark_gateway.tools.parser import CallParser, Parsed, ParsedCall, Piece, StrayTag
from twinspark_gateway.tools.thought_calls import ThoughtCalls

# The next speaker's marker: the model writes it at times, and it is never text of a chat reply.
ASSISTANT_MARKER = "<|assistant|>"
# What the model writes when it hands over to the tools.
OBSERVATION_MARKER = "<|observation|>"


class ChatReader:
    """See TextReader. Calls are looked for if the request offers tools; else their markup is ordinary text."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        prompt_token_ids: Sequence[int],
        stops: Sequence[str],
        *,
        skip_special_tokens: bool,
        offer: ToolOffer | None = None,
        eos_token_ids: frozenset[int] = frozenset(),
        is_exact: bool = False,
    ) -> None:
        self._tokenizer = tokenizer
        self._splitter = ReasoningSplitter(tokenizer.think_tokens(), prompt_token_ids)
        self._offer = offer or ToolOffer()
        tags = (tokenizer.tool_tags() or {}) if self._offer.tools else {}
        self._calls = CallParser(tags, self._offer)
        self._thoughts = ThoughtCalls(CallParser(tags, self._offer))
        self._answer = AnswerText(stops, may_have_calls=bool(tags))
        self._detokenizers = {Part.REASONING: Detokenizer(), Part.ANSWER: Detokenizer()}
        self._skip_special_tokens = skip_special_tokens
        self._assistant = tokenizer.id_of(ASSISTANT_MARKER)
        self._observation = tokenizer.id_of(OBSERVATION_MARKER)
        self._eos_token_ids = eos_token_ids
        self._tags = tags
        # Whether the answer is a value of a format: then no blank of it is layout.
        self._is_exact = is_exact
        self._is_answer_empty = True
        self.num_calls = 0

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
        if part is Part.MARKUP and not self._calls.is_inside:
            return SafeText() if self._splitter.is_inside else _thought(self._thoughts.close())
        if self._is_hidden(token_id):
            return SafeText()
        if part is Part.REASONING:
            return _thought(self._thoughts.take(Piece(token_id, self._text(token_id, part))))
        safe = SafeText()
        piece = Piece(token_id, self._text(token_id, Part.ANSWER), logprob, may_stop)
        self._show(self._calls.take(piece), safe)
        return safe

    def would_reason(self, token_id: int) -> bool:
        """See TextReader."""
        return self._splitter.is_inside and not self._splitter.is_closing(token_id)

    def take_forced(self, token_id: int) -> SafeText:
        """See TextReader; what stands behind a reasoning that was closed so is layout."""
        if not self._splitter.is_inside:
            return SafeText()
        self._detokenizers = {part: Detokenizer() for part in self._detokenizers}
        return self.take(token_id, None, may_stop=False)

    def end(self, token_id: int | None, logprob: TokenLogprob | None) -> SafeText:
        """See TextReader; the token that ended a chat reply is not listed."""
        if self._splitter.is_inside:
            if not self._hands_over(token_id):
                return _thought(self._thoughts.close())
            pieces, calls = self._thoughts.hand_over()
            safe = _thought(pieces)
            self._show(calls, safe)
            return safe
        safe = SafeText()
        self._show(self._calls.end(may_close=token_id in self._eos_token_ids), safe)
        if self.matched_stop is None:
            content, entries = self._answer.flush()
            safe.add(SafeText(content=content, logprobs=entries))
        return safe

    def _hands_over(self, token_id: int | None) -> bool:
        """Say whether a reply that ends in its reasoning hands over to tools that the model may choose to call."""
        is_end = token_id is not None and token_id == self._observation and token_id in self._eos_token_ids
        return is_end and self._offer.choice is ToolChoice.AUTO

    def _text(self, token_id: int, part: Part) -> str:
        """Give the characters that the token completes; a character that a tag interrupts is dropped."""
        tag = self._tags.get(token_id)
        if tag is not None:
            self._detokenizers[part] = Detokenizer()
            return tag.value
        return self._detokenizers[part].feed(self._tokenizer.token_bytes(token_id))

    def _show(self, found: Sequence[Parsed], safe: SafeText) -> None:
        for item in found:
            if self.matched_stop is not None:
                return
            if isinstance(item, ParsedCall):
                self._show_call(item, safe)
            elif not isinstance(item, StrayTag):
                self._show_text(item, safe)
            elif not self.num_calls:
                self._show_text(item.piece, safe)

    def _show_text(self, piece: Piece, safe: SafeText) -> None:
        if self._splitter.is_markup(piece.token_id):
            return
        text = piece.text
        if self._is_answer_empty and text and not self._is_exact:
            # Line breaks between reasoning and answer, and blanks between a call and an answer, are layout.
            text = text.lstrip() if self.num_calls else text.lstrip("\n") if self.num_reasoning_tokens else text
            if not text:
                return
        self._is_answer_empty = self._is_answer_empty and not text
        content, entries = self._answer.take(text, piece.token_id, piece.logprob, may_stop=piece.may_stop)
        safe.add(SafeText(content=content, logprobs=entries))

    def _show_call(self, call: ParsedCall, safe: SafeText) -> None:
        content, entries = self._answer.break_off()
        safe.add(SafeText(content=content, logprobs=entries))
        self._is_answer_empty = self._answer.is_empty
        if self.num_calls and not self._offer.parallel:
            return
        safe.calls.append(ToolCall(self.num_calls, f"call_{uuid.uuid4().hex[:24]}", call.name, call.arguments))
        self.num_calls += 1

    def _is_hidden(self, token_id: int) -> bool:
        if token_id == self._assistant:
            return True
        return self._skip_special_tokens and self._tokenizer.is_special(token_id)


def _thought(pieces: Sequence[Piece]) -> SafeText:
    return SafeText(reasoning="".join(piece.text for piece in pieces))
