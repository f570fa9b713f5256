"""/v1/completions with token ids, echo and log probabilities against the model's own forward; health and reflection."""

from pathlib import Path
from typing import Any

import grpc
import openai
import pytest
import torch
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from support.launched import Launched
from support.running_chat import get
from support.thread_transport import run_ranks
from twinspark_engine.model.config import ModelConfig
from twinspark_engine.model.model import Model
from twinspark_engine.model.rows import Rows
from twinspark_engine.model.state import ModelState
from twinspark_engine.model.weights import load_weights
from twinspark_engine.ranks.transport import Transport
from twinspark_kernels.row_class import RowClass

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PROMPT = [(37 * place + 11) % 1400 for place in range(150)]


def logprobs_of_prompt(folder: Path, ids: list[int]) -> torch.Tensor:
    """float64 [T, V] of a whole forward on two ranks in this process."""
    config = ModelConfig.from_folder(folder)

    def on_rank(transport: Transport) -> torch.Tensor:
        weights = load_weights(folder, config, transport.rank, 2, torch.float32)
        model = Model(config, weights, transport)
        state = ModelState.allocate(config, 2, 1, 256, torch.float32)
        hidden = model.forward(Rows.segment(RowClass.PROMPT, torch.tensor(ids), 0, 0), state)
        return model.logits(hidden, RowClass.PROMPT)

    return torch.cat(run_ranks(2, on_rank), dim=1).double().log_softmax(dim=-1)


def test_echo_gives_the_models_log_probabilities_of_every_position(
    client: openai.OpenAI, model: str, tiny_folder: Path
) -> None:
    reply = client.completions.create(model=model, prompt=PROMPT, max_tokens=0, echo=True, logprobs=3)
    found = reply.choices[0].logprobs
    assert found is not None
    own: list[Any] = list(found.token_logprobs or ())
    assert len(own) == len(PROMPT)
    assert own[0] is None
    expected = logprobs_of_prompt(tiny_folder, PROMPT)
    # The same two partial sums in the same order; only the log of the sum of exp is added in another one.
    assert own[1:] == pytest.approx(
        [expected[place, token_id].item() for place, token_id in enumerate(PROMPT[1:])], abs=1e-9
    )
    assert found.top_logprobs is not None
    for entry, row in zip(found.top_logprobs[1:], expected[:-1], strict=True):
        # The prompt's own token is listed beside the top.
        assert sorted(entry.values(), reverse=True)[:3] == pytest.approx(row.topk(3).values.tolist(), abs=1e-9)


def test_a_greedy_reply_continues_its_prompt_and_scores_its_own_tokens(client: openai.OpenAI, model: str) -> None:
    extra: dict[str, Any] = {"ignore_eos": True, "return_token_ids": True}
    first = client.completions.create(
        model=model, prompt=PROMPT, max_tokens=6, temperature=0, logprobs=1, extra_body=extra
    )
    scores = first.choices[0].logprobs
    assert scores is not None
    assert scores.token_logprobs is not None
    assert scores.top_logprobs is not None
    assert len(scores.token_logprobs) == 6
    for own, top in zip(scores.token_logprobs, scores.top_logprobs, strict=True):
        assert own == max(top.values())


def test_health_is_ok(instance: Launched) -> None:
    status, health = get(instance.port, "/health")
    assert (status, health["ok"]) == (200, True)


def test_reflection_lists_the_services_of_both_ranks(instance: Launched) -> None:
    for name, service in (("engine-0", "EngineService"), ("engine-1", "RankService")):
        port = instance.environment_of(name)["TWINSPARK_ENGINE_PORT"]
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            services = ProtoReflectionDescriptorDatabase(channel).get_services()
        assert {f"twinspark.engine.v1.{service}", "grpc.health.v1.Health"} <= set(services)
