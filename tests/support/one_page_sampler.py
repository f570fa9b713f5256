"""The draw on one page: one row, whole vocabulary, plain integers and float64. It defines what a sampler answers."""

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import torch

from twinspark_engine.request import SamplingParams

MASK = (1 << 64) - 1


def _mix(x: int) -> int:
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 & MASK
    x ^= x >> 27
    x = x * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


def noise(seed: int, position: int, token_id: int) -> float:
    """Standard Gumbel noise of one id."""
    x = _mix((seed + 0x9E3779B97F4A7C15) & MASK)
    x = _mix(x ^ (position * 0xD1B54A32D192ED03 & MASK))
    u = min((_mix(x ^ token_id) >> 11) * 2.0**-53 + 2.0**-54, 1 - 2.0**-53)
    return -math.log(-math.log(u))


@dataclass(frozen=True)
class Before:
    """What stands before a drawn token: the whole prompt, and the ids that count as output."""

    prompt: Sequence[int] = ()
    output: Sequence[int] = ()
    stops: frozenset[int] = frozenset()
    """End tokens and stop ids."""
    min_tokens: int = 0


def adjust(row: list[float], params: SamplingParams, before: Before) -> list[float]:
    """The logits that are drawn from: penalties, logit_bias, rounded to float32; -inf for ends that come too early."""
    bias = dict(params.logit_bias)
    adjusted = []
    for token_id, logit in enumerate(row):
        count = list(before.output).count(token_id)
        if count or token_id in before.prompt:
            penalty = params.repetition_penalty
            logit = logit / penalty if logit > 0 else logit * penalty
        logit -= params.frequency_penalty * count
        logit -= params.presence_penalty if count else 0.0
        logit += bias.get(token_id, 0.0)
        adjusted.append(_to_float32(logit))
    is_early = len(before.output) < before.min_tokens
    return [-math.inf if is_early and token_id in before.stops else logit for token_id, logit in enumerate(adjusted)]


def _to_float32(x: float) -> float:
    largest = struct.unpack("<f", b"\xff\xff\x7f\x7f")[0]
    rounded: float = struct.unpack("<f", struct.pack("<f", min(max(x, -largest), largest)))[0]
    return rounded


def _exp(x: float) -> float:
    # The engine's exp: math.exp may differ in the last place, which would move a fixed-point mass by one.
    return torch.exp(torch.tensor([x], dtype=torch.float64)).item()


def draw_token(
    raw: list[float],
    params: SamplingParams,
    position: int,
    masked: frozenset[int] = frozenset(),
    before: Before | None = None,
) -> int:
    """The drawn id: adjust, order by (logit descending, id ascending), top_k, nucleus, min_p, largest plus noise."""
    row = adjust(raw, params, before or Before())
    allowed = [token_id for token_id in range(len(row)) if token_id not in masked and row[token_id] > -math.inf]
    order = sorted(allowed, key=lambda token_id: (-row[token_id], token_id))
    if params.temperature <= 0:
        return order[0]
    if params.top_k:
        order = order[: params.top_k]
    scaled = {token_id: row[token_id] / max(params.temperature, 1e-6) for token_id in order}
    largest = scaled[order[0]]
    if params.top_p < 1:
        masses = [math.floor(_exp(scaled[token_id] - largest) * 2**40) for token_id in order]
        need = math.ceil(Fraction(params.top_p) * sum(masses))
        kept, reached = 0, 0
        while reached < need:
            reached += masses[kept]
            kept += 1
        order = order[:kept]
    if params.min_p > 0:
        order = [token_id for token_id in order if scaled[token_id] >= largest + math.log(params.min_p)]
    scores = {token_id: scaled[token_id] + noise(params.seed, position, token_id) for token_id in order}
    best = max(scores.values())
    return min(token_id for token_id in order if scores[token_id] == best)


def logprob(row: list[float], token_id: int) -> float:
    """Natural logarithm of the id's probability at temperature 1, before every cut and mask."""
    largest = max(row)
    return row[token_id] - largest - math.log(math.fsum(math.exp(logit - largest) for logit in row))


def top_logprobs(row: list[float], count: int) -> tuple[tuple[int, ...], list[float]]:
    """The most likely ids, ties to the lower id, and their log probabilities."""
    order = sorted(range(len(row)), key=lambda token_id: (-row[token_id], token_id))[:count]
    return tuple(order), [logprob(row, token_id) for token_id in order]
