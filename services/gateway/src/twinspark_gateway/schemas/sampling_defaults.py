"""Sampling defaults of the checkpoint: its generation_config.json, else 1.0 / off."""

import json
from dataclasses import dataclass
from pathlib import Path

from twinspark_gateway.errors import ApiError
from twinspark_gateway.schemas.fields import Fields

GENERATION_CONFIG_FILE = "generation_config.json"


class GenerationConfigError(Exception):
    """generation_config.json cannot be used; the message names the field."""


@dataclass(frozen=True, slots=True)
class SamplingDefaults:
    """What a request gets for each field that it leaves out."""

    temperature: float = 1.0
    top_p: float = 1.0
    # 0: off.
    top_k: int = 0
    min_p: float = 0.0
    # 1: off.
    repetition_penalty: float = 1.0


def load_sampling_defaults(folder: Path) -> SamplingDefaults:
    """Read the folder's defaults. Raises GenerationConfigError for values that a request could not have either."""
    path = folder / GENERATION_CONFIG_FILE
    if not path.is_file():
        return SamplingDefaults()
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise GenerationConfigError(f"{GENERATION_CONFIG_FILE} is not JSON: {error}") from error
    if not isinstance(config, dict):
        raise GenerationConfigError(f"{GENERATION_CONFIG_FILE} must hold an object")
    fields = Fields(config)
    try:
        temperature = fields.number("temperature", 0)
        top_p = fields.number("top_p", 0, 1, above_low=True)
        top_k = fields.integer("top_k")
        min_p = fields.number("min_p", 0, 1)
        repetition_penalty = fields.number("repetition_penalty", 0, above_low=True)
    except ApiError as error:
        raise GenerationConfigError(f"{GENERATION_CONFIG_FILE}: {error.message}") from error
    return SamplingDefaults(
        temperature=1.0 if temperature is None else temperature,
        top_p=1.0 if top_p is None else top_p,
        top_k=0 if top_k is None else max(top_k, 0),
        min_p=0.0 if min_p is None else min_p,
        repetition_penalty=1.0 if repetition_penalty is None else repetition_penalty,
    )
