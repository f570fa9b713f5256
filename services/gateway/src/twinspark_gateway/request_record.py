"""What is known about one HTTP request: it becomes one log line, without text, and the gateway's metrics."""

import time
from dataclasses import dataclass, field

from starlette.requests import Request

from twinspark_gateway.errors import CLIENT_GONE, ApiError
from twinspark_gateway.prompt.prompt_history import PromptTraits
from twinspark_gateway.reply.choice import Ended
from twinspark_gateway.reply.usage import Usage


@dataclass(slots=True)
class RequestRecord:
    """Filled by the route while the request runs; the access layer writes it out at the end."""

    request_id: str
    method: str
    path: str
    key_label: str | None = None
    started: float = field(default_factory=time.monotonic)
    status: int = 0
    # Set for requests that generate.
    is_generation: bool = False
    stream: bool = False
    usage: Usage | None = None
    max_tokens: int | None = None
    num_choices: int = 0
    thinking: bool | None = None
    # What the template was told, and the number of the token that may not reason any more.
    effort: str | None = None
    thinking_budget: int | None = None
    # Choices whose reasoning the budget closed.
    num_closed: int = 0
    # Turns of the conversation whose reasoning was put back.
    restored_turns: int | None = None
    finish_reasons: list[str] = field(default_factory=list)
    first_token_at: float | None = None
    last_token_at: float | None = None
    queue_seconds: float | None = None
    prefill_seconds: float | None = None
    decode_seconds: float | None = None
    # Prompt tokens that one choice had computed at most.
    num_prefilled_tokens: int = 0
    # Output tokens after each call's first, and the rounds that they took.
    num_decoded_tokens: int = 0
    num_rounds: int = 0
    # Generating requests when this one began, itself included.
    num_concurrent: int | None = None
    # The engine's KV blocks when this request began, from the last copy of its statistics.
    num_free_blocks: int | None = None
    num_used_blocks: int | None = None
    traits: PromptTraits | None = None
    error: ApiError | None = None

    def note_token(self) -> None:
        """Note the time of output that reached the gateway."""
        self.last_token_at = time.monotonic()
        if self.first_token_at is None:
            self.first_token_at = self.last_token_at

    def note_end(self, ended: Ended) -> None:
        """Note how a choice ended."""
        self.finish_reasons.append(ended.finish_reason)
        self.num_closed += ended.was_closed
        timings = ended.timings
        self.queue_seconds = max(self.queue_seconds or 0.0, timings.queue_seconds)
        self.prefill_seconds = max(self.prefill_seconds or 0.0, timings.prefill_seconds)
        self.num_prefilled_tokens = max(self.num_prefilled_tokens, timings.num_prefilled_tokens)
        self.decode_seconds = max(self.decode_seconds or 0.0, timings.decode_seconds)
        self.num_decoded_tokens += timings.num_decoded_tokens
        self.num_rounds += timings.num_rounds

    @property
    def outcome(self) -> str:
        """How the request ended: ok, cancelled, refused or failed."""
        status = self.error.status if self.error is not None else self.status
        if status == CLIENT_GONE:
            return "cancelled"
        if status >= 500:
            return "failed"
        return "refused" if status >= 400 else "ok"

    def log_fields(self) -> dict[str, object]:
        """Give the fields of the log line; unknown ones are left out."""
        fields: dict[str, object | None] = {
            "method": self.method,
            "path": self.path,
            "status": self.status,
            "outcome": self.outcome,
            "seconds": round(time.monotonic() - self.started, 4),
            "key": self.key_label,
        }
        if self.error is not None:
            # The code, not the message: messages may quote a value of the request.
            fields |= {"error": self.error.code or self.error.type, "param": self.error.param}
        if self.is_generation:
            fields |= self._generation_fields()
        return {name: value for name, value in fields.items() if value is not None}

    def _generation_fields(self) -> dict[str, object | None]:
        usage = self.usage
        first = self.first_token_at
        return {
            "stream": self.stream,
            "thinking": self.thinking,
            "effort": self.effort,
            "thinking_budget": self.thinking_budget,
            "budget_closed": self.num_closed if self.thinking_budget is not None else None,
            "restored_turns": self.restored_turns or None,
            "max_tokens": self.max_tokens,
            "choices": self.num_choices,
            "prompt_tokens": usage.prompt_tokens if usage else None,
            "cached_tokens": usage.cached_tokens if usage else None,
            "output_tokens": usage.completion_tokens if usage else None,
            "reasoning_tokens": usage.reasoning_tokens if usage else None,
            "finish": ",".join(self.finish_reasons) or None,
            "first_token_seconds": round(first - self.started, 4) if first is not None else None,
            "queue_seconds": self.queue_seconds,
            "prefill_seconds": self.prefill_seconds,
            "prefill_tokens_per_second": _rate(self.num_prefilled_tokens, self.prefill_seconds),
            "decode_seconds": self.decode_seconds,
            "decode_tokens_per_second": _rate(self.num_decoded_tokens, self.decode_seconds),
            "tokens_per_round": _rate(self.num_decoded_tokens, self.num_rounds),
            "concurrent": self.num_concurrent,
            "kv_blocks_free": self.num_free_blocks,
            "kv_blocks_used": self.num_used_blocks,
            **(self._trait_fields(self.traits) if self.traits is not None else {}),
        }

    @staticmethod
    def _trait_fields(traits: PromptTraits) -> dict[str, object | None]:
        return {
            "head_hash": traits.head_hash,
            "conversation": traits.conversation,
            "system_tokens": traits.num_system_tokens,
            "system_hash": traits.system_hash,
            "common_own_tokens": traits.num_common_own,
            "common_other_tokens": traits.num_common_other,
        }


def _rate(count: int, divisor: float | None) -> float | None:
    return round(count / divisor, 2) if count > 0 and divisor else None


def record_of(request: Request) -> RequestRecord:
    """Give the record that the access layer made for this request."""
    record = request.state.record
    assert isinstance(record, RequestRecord)
    return record
