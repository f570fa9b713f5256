"""The body of POST /v1/completions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from twinspark_gateway.constraint import Constraint
from twinspark_gateway.errors import invalid, not_served_yet
from twinspark_gateway.generation import EngineModel
from twinspark_gateway.schemas.fields import Fields, check_token_ids, refuse
from twinspark_gateway.schemas.formats import check_beside, read_format
from twinspark_gateway.schemas.later_fields import COMPLETION, check_later_fields
from twinspark_gateway.schemas.sampling import ReplyParams, read_reply_params
from twinspark_gateway.schemas.sampling_defaults import SamplingDefaults

MAX_PROMPTS = 128
# OpenAI's default, and what evaluation harnesses expect.
DEFAULT_MAX_TOKENS = 16

Prompt = str | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """A checked completion request; each prompt is text or token ids."""

    prompts: Sequence[Prompt]
    add_special_tokens: bool
    params: ReplyParams
    # The limit that was given; None: DEFAULT_MAX_TOKENS, or less where the context leaves less.
    max_tokens: int | None
    num_top_logprobs: int | None
    echo: bool
    # What each completion must be; None: any text.
    constraint: Constraint | None


def read_completion_request(
    body: Mapping[str, Any], model: EngineModel, defaults: SamplingDefaults
) -> CompletionRequest:
    """Read and check a body. Raises ApiError."""
    fields = Fields(body)
    check_later_fields(body, COMPLETION)
    params = read_reply_params(fields, model, defaults)
    constraint = read_format(fields)
    check_beside(params, constraint)
    best_of = fields.integer("best_of", 1)
    if best_of not in (None, 1, params.num_choices):
        raise not_served_yet("best_of", " unless it equals 'n'")
    echo = fields.boolean("echo", False)
    max_tokens = fields.integer("max_tokens", 0)
    if max_tokens == 0 and not echo:
        raise invalid("max_tokens", "'max_tokens' may be 0 only with 'echo': true.", code="invalid_value")
    return CompletionRequest(
        prompts=_read_prompts(fields.get("prompt"), model.vocabulary_size),
        add_special_tokens=fields.boolean("add_special_tokens", False),
        params=params,
        max_tokens=max_tokens,
        num_top_logprobs=fields.integer("logprobs", 0, model.max_top_logprobs),
        echo=echo,
        constraint=constraint,
    )


def _read_prompts(value: Any, vocabulary_size: int) -> list[Prompt]:
    if isinstance(value, str):
        return [_checked(value)]
    if not isinstance(value, list) or not value:
        raise refuse("prompt", value, "a string, a list of token ids, or a non-empty list of these")
    if not isinstance(value[0], str | list):
        return [check_token_ids("prompt", value, vocabulary_size)]
    if len(value) > MAX_PROMPTS:
        raise invalid("prompt", f"'prompt' must hold at most {MAX_PROMPTS} prompts.", code="invalid_value")
    kind = type(value[0])
    if not all(type(prompt) is kind for prompt in value):
        raise invalid("prompt", "'prompt' must not mix strings and lists of token ids.", code="invalid_value")
    if kind is str:
        return [_checked(prompt) for prompt in value]
    return [_checked(check_token_ids("prompt", prompt, vocabulary_size)) for prompt in value]


def _checked(prompt: Prompt) -> Prompt:
    if not prompt:
        raise invalid("prompt", "'prompt' must not be empty.", code="invalid_value")
    return prompt
