"""The fake engine's language model: logits from a hash of the tokens so far, drawn as the engine's contract says."""

import hashlib
import math
import random
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from twinspark.engine.v1 import engine_pb2 as pb

_SPREAD = 2.5


@dataclass(frozen=True)
class FakeModel:
    """What Describe answers, and the source of logits. Small enough for plain Python."""

    vocabulary_size: int = 304
    context_length: int = 512
    eos_token_ids: tuple[int, ...] = (273, 277, 279)
    num_slots: int = 2
    max_top_logprobs: int = 20
    fingerprint: str = "fake-engine"
    # Ids that are never drawn, as in an engine whose tokenizer has fewer tokens than the embedding has rows.
    masked_ids: frozenset[int] = field(default_factory=frozenset)

    def logits(self, token_ids: Sequence[int]) -> list[float]:
        """Give [vocabulary_size] logits of the token that follows."""
        digest = hashlib.sha256(struct.pack(f"<{len(token_ids)}I", *token_ids)).digest()
        noise = random.Random(digest)
        return [noise.gauss(0, _SPREAD) for _ in range(self.vocabulary_size)]

    def log_softmax(self, token_ids: Sequence[int]) -> list[float]:
        """Give [vocabulary_size] log probabilities of the token that follows, at temperature 1."""
        logits = self.logits(token_ids)
        largest = max(logits)
        total = largest + math.log(sum(math.exp(value - largest) for value in logits))
        return [value - total for value in logits]

    def describe_token(self, before: Sequence[int], token_id: int, num_top: int) -> pb.TokenLogprobs:
        """Give the log probability of a token after others, and the most likely alternatives."""
        values = self.log_softmax(before)
        top = sorted(range(self.vocabulary_size), key=lambda i: (-values[i], i))[:num_top]
        return pb.TokenLogprobs(
            logprob=values[token_id], top_token_ids=top, top_logprobs=[values[top_id] for top_id in top]
        )

    def draw(self, request: pb.GenerateRequest, output: Sequence[int], seed: int) -> int:
        """Draw the token after output: adjust, temperature, top_k, top_p, min_p, then the largest with Gumbel noise."""
        sampling, before = request.sampling, [*request.prompt_token_ids, *output]
        temperature = sampling.temperature if sampling.HasField("temperature") else 1.0
        banned = self.masked_ids | self._banned_ends(request, len(output))
        logits = _adjust(self.logits(before), request, output)
        values = [(value, i) for i, value in enumerate(logits) if i not in banned]
        values.sort(key=lambda pair: (-pair[0], pair[1]))
        if temperature == 0:
            return values[0][1]
        kept = list(_filter([(value / temperature, i) for value, i in values], sampling))
        noise = random.Random(f"{seed}:{len(before)}")
        gumbel = [-math.log(-math.log(noise.random() or 1e-300)) for _ in range(self.vocabulary_size)]
        return max(kept, key=lambda pair: (pair[0] + gumbel[pair[1]], -pair[1]))[1]

    def _banned_ends(self, request: pb.GenerateRequest, num_output: int) -> set[int]:
        if request.num_prior_output_tokens + num_output >= request.limits.min_tokens:
            return set()
        return {*request.limits.stop_token_ids, *self.eos_token_ids}


def _adjust(logits: list[float], request: pb.GenerateRequest, output: Sequence[int]) -> list[float]:
    """Apply penalties and logit_bias."""
    sampling, prompt = request.sampling, request.prompt_token_ids
    counts = Counter([*prompt[len(prompt) - request.num_prior_output_tokens :], *output])
    repetition = sampling.repetition_penalty if sampling.HasField("repetition_penalty") else 1.0
    for token_id in {*prompt, *output}:
        logits[token_id] *= 1 / repetition if logits[token_id] > 0 else repetition
    for token_id, count in counts.items():
        logits[token_id] -= sampling.frequency_penalty * count + sampling.presence_penalty
    for token_id, bias in sampling.logit_bias.items():
        logits[token_id] += bias
    return logits


def _filter(values: list[tuple[float, int]], sampling: pb.SamplingParams) -> Iterator[tuple[float, int]]:
    """Keep what the filters keep of (logit, id) pairs, sorted by falling logit."""
    if sampling.top_k:
        values = values[: sampling.top_k]
    weights = [math.exp(value - values[0][0]) for value, _ in values]
    top_p = sampling.top_p if sampling.HasField("top_p") else 1.0
    reached, total = 0.0, sum(weights)
    for pair, weight in zip(values, weights, strict=True):
        if weight < sampling.min_p or reached >= top_p * total:
            return
        reached += weight
        yield pair


def derive_seed(prompt_token_ids: Sequence[int]) -> int:
    """Give the seed of a request without one."""
    packed = struct.pack(f"<{len(prompt_token_ids)}I", *prompt_token_ids)
    return int.from_bytes(hashlib.sha256(b"seed" + packed).digest()[:8], "little")
