"""The request params that chat and completions share: how tokens are drawn and when a reply ends."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from twinspark_gateway.errors import invalid, not_served_yet
from twinspark_gateway.generation import EngineModel, Sampling
from twinspark_gateway.schemas.fields import Fields, read_integer, refuse, show
from twinspark_gateway.schemas.sampling_defaults import SamplingDefaults

MAX_STOPS = 64
MAX_STOP_CHARACTERS = 4096
MAX_PENALTY = 2
MAX_BIAS = 100
_TOP_K_OFF = 0
# One spelling for each id, so that no two keys mean the same.
_TOKEN_ID = re.compile(r"0|[1-9][0-9]{0,9}")


@dataclass(frozen=True, slots=True)
class ReplyParams:
    """What a request says about its reply, apart from the prompt and the limit of tokens."""

    sampling: Sampling
    num_choices: int
    stop: tuple[str, ...]
    stop_token_ids: tuple[int, ...]
    ignore_eos: bool
    min_tokens: int
    skip_special_tokens: bool
    stream: bool
    include_usage: bool
    continuous_usage: bool
    return_token_ids: bool
    # False: one token a step. The reply is the same.
    draft: bool
    # Yields its slot to foreground requests.
    is_background: bool


def read_reply_params(fields: Fields, model: EngineModel, defaults: SamplingDefaults) -> ReplyParams:
    """Read and check the shared fields. Raises ApiError."""
    stream = fields.boolean("stream", False)
    include_usage, continuous_usage = _read_stream_options(fields, stream)
    return ReplyParams(
        sampling=_read_sampling(fields, defaults, model.vocabulary_size),
        num_choices=_read_n(fields, model.num_slots),
        stop=_read_stop(fields),
        stop_token_ids=fields.token_ids("stop_token_ids", model.vocabulary_size),
        ignore_eos=fields.boolean("ignore_eos", False),
        min_tokens=fields.integer("min_tokens", 0) or 0,
        skip_special_tokens=fields.boolean("skip_special_tokens", True),
        stream=stream,
        include_usage=include_usage,
        continuous_usage=continuous_usage,
        return_token_ids=fields.boolean("return_token_ids", False),
        draft=_read_draft(fields),
        is_background=_read_priority(fields),
    )


def _read_sampling(fields: Fields, defaults: SamplingDefaults, vocabulary_size: int) -> Sampling:
    temperature = fields.number("temperature", 0)
    top_p = fields.number("top_p", 0, 1, above_low=True)
    min_p = fields.number("min_p", 0, 1)
    top_k = fields.integer("top_k")
    repetition_penalty = fields.number("repetition_penalty", 0, above_low=True)
    seed = fields.integer("seed")
    if seed is not None and seed >= 1 << 63:
        seed -= 1 << 64
    return Sampling(
        temperature=defaults.temperature if temperature is None else temperature,
        top_k=defaults.top_k if top_k is None else min(max(top_k, _TOP_K_OFF), (1 << 31) - 1),
        top_p=defaults.top_p if top_p is None else top_p,
        min_p=defaults.min_p if min_p is None else min_p,
        repetition_penalty=defaults.repetition_penalty if repetition_penalty is None else repetition_penalty,
        frequency_penalty=fields.number("frequency_penalty", -MAX_PENALTY, MAX_PENALTY) or 0.0,
        presence_penalty=fields.number("presence_penalty", -MAX_PENALTY, MAX_PENALTY) or 0.0,
        logit_bias=_read_logit_bias(fields, vocabulary_size),
        seed=seed,
    )


def _read_logit_bias(fields: Fields, vocabulary_size: int) -> dict[int, float]:
    biases = {}
    for key, bias in fields.mapping("logit_bias").items():
        if _TOKEN_ID.fullmatch(key) is None or int(key) >= vocabulary_size:
            expected = f"an object whose keys are token ids of the vocabulary (0 to {vocabulary_size - 1})"
            raise refuse("logit_bias", key, expected)
        if isinstance(bias, bool) or not isinstance(bias, int | float) or not -MAX_BIAS <= bias <= MAX_BIAS:
            expected = f"an object whose values are numbers, at least {-MAX_BIAS} and at most {MAX_BIAS}"
            raise refuse("logit_bias", bias, expected)
        biases[int(key)] = float(bias)
    return biases


def _read_draft(fields: Fields) -> bool:
    """Whether tokens may be proposed: true leaves it to the engine's policy. The reply never depends on it."""
    if isinstance(fields.get("draft"), str):
        raise not_served_yet("draft", ": no drafter is served by name yet; true and false are")
    return fields.boolean("draft", True)


def _read_priority(fields: Fields) -> bool:
    """Whether the request is a background one: by name, or by a number above 0 (a larger one is handled later)."""
    value = fields.get("priority")
    if isinstance(value, str) and value in ("background", "foreground"):
        return value == "background"
    number = None if value is None else read_integer(value)
    if value is not None and number is None:
        raise refuse("priority", value, 'an integer, "foreground" or "background"')
    return number is not None and number > 0


def _read_n(fields: Fields, num_slots: int) -> int:
    count = fields.integer("n", 1)
    if count is not None and count > num_slots:
        raise invalid("n", f"'n' must be at most {num_slots} on this server (got {show(count)}).", code="invalid_value")
    return 1 if count is None else count


def _read_stop(fields: Fields) -> tuple[str, ...]:
    value = fields.get("stop")
    stops: Sequence[object] = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(stops, list) or not all(isinstance(stop, str) for stop in stops):
        raise refuse("stop", value, "a string or a list of strings")
    texts = tuple(str(stop) for stop in stops if stop)
    if len(texts) > MAX_STOPS:
        raise invalid("stop", f"'stop' must hold at most {MAX_STOPS} strings.", code="invalid_value")
    if any(len(text) > MAX_STOP_CHARACTERS for text in texts):
        message = f"'stop': each string must be at most {MAX_STOP_CHARACTERS} characters long."
        raise invalid("stop", message, code="invalid_value")
    return texts


def _read_stream_options(fields: Fields, stream: bool) -> tuple[bool, bool]:
    """Give (include_usage, continuous_usage_stats)."""
    stream_options = fields.inner("stream_options")
    if fields.get("stream_options") is not None and not stream:
        raise invalid("stream_options", "'stream_options' is only allowed with 'stream': true.", code="invalid_value")
    return stream_options.boolean("include_usage", False), stream_options.boolean("continuous_usage_stats", False)
