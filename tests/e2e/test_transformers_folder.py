"""Folders as Transformers' `save_pretrained` writes them, served by the launcher and judged by Transformers."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import Glm5NextForConditionalGeneration

from support.free_ports import pick_free_ports
from support.hf_models import HfShape, build_model, save_model
from support.hf_reference import run_reference
from support.launched import Launched
from support.running_chat import post
from support.tiny_tokenizer import build_tokenizer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

TOLERANCE = 2e-3
SHAPE = HfShape("kKdD", vocab=330, seed=4)
LENGTHS = (1, 65, 300)
NUM_OUTPUT_TOKENS = 6
CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 4}
Launch = Callable[..., Launched]


@dataclass(frozen=True)
class SavedModel:
    """A folder, and what Transformers loads from it in fp32."""

    folder: Path
    reference: Glm5NextForConditionalGeneration

    def log_probabilities(self, ids: list[int]) -> Tensor:
        """float64 [T, vocab]: row t is the distribution of the token after ids[t]."""
        return run_reference(self.reference, ids).logits.double().log_softmax(dim=-1)


@pytest.fixture(scope="module")
def launch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launch]:
    """Starts an instance on a folder; all are stopped at the end of this module."""
    with ExitStack() as stack:

        def start(model: Path, ranks: int = 2, dtype: str = "float32") -> Launched:
            run, port = tmp_path_factory.mktemp("run"), pick_free_ports(1)[0]
            return stack.enter_context(Launched(run, port, model, ranks=ranks, dtype=dtype)).wait_healthy()

        yield start


def save(folder: Path, dtype: torch.dtype, *, has_vision: bool) -> SavedModel:
    """Save a random model; nothing but Transformers writes config.json."""
    save_model(build_model(SHAPE).to(dtype), folder)
    text = json.loads((folder / "config.json").read_text())["text_config"]
    assert set(text["layer_types"]) == {"linear_attention", "indexed_attention"}
    assert {"linear_head_dim", "linear_num_heads"} <= set(text)
    assert not {"linear_attn_config", "num_nextn_predict_layers"} & set(text)
    tensors = load_file(folder / "model.safetensors")
    assert {tensor.dtype for tensor in tensors.values()} == {dtype}
    assert not any("mtp" in name or f"layers.{len(SHAPE.layers)}." in name for name in tensors)
    vision = {name for name in tensors if ".visual." in name}
    assert vision
    if not has_vision:
        text_only = {name: tensor for name, tensor in tensors.items() if name not in vision}
        save_file(text_only, folder / "model.safetensors", metadata={"format": "pt"})
    return SavedModel(folder, load(folder, torch.float32))


def load(folder: Path, dtype: torch.dtype) -> Glm5NextForConditionalGeneration:
    return Glm5NextForConditionalGeneration.from_pretrained(
        folder, dtype=dtype, attn_implementation="eager", experts_implementation="eager"
    ).eval()


@pytest.fixture(scope="module")
def fp32(tmp_path_factory: pytest.TempPathFactory) -> SavedModel:
    """fp32 with vision tensors, beside a bare tokenizer.json."""
    saved = save(tmp_path_factory.mktemp("fp32"), torch.float32, has_vision=True)
    build_tokenizer().save(str(saved.folder / "tokenizer.json"))
    return saved


@pytest.fixture(scope="module")
def bf16(tmp_path_factory: pytest.TempPathFactory) -> SavedModel:
    """bf16 throughout, without vision tensors and without a tokenizer."""
    return save(tmp_path_factory.mktemp("bf16"), torch.bfloat16, has_vision=False)


@pytest.fixture(scope="module")
def served_fp32(launch: Launch, fp32: SavedModel) -> Launched:
    """The fp32 folder on two ranks."""
    return launch(fp32.folder)


@pytest.fixture(scope="module")
def served_bf16(launch: Launch, bf16: SavedModel) -> Launched:
    """The bf16 folder on two ranks, computed in fp32."""
    return launch(bf16.folder)


def prompt_of(length: int) -> list[int]:
    generator = torch.Generator().manual_seed(length)
    return torch.randint(0, SHAPE.vocab, (length,), generator=generator).tolist()


def complete(served: Launched, prompt: list[int], max_tokens: int) -> dict[str, Any]:
    """The only choice of a greedy reply that repeats its prompt, with log probabilities."""
    status, reply = post(
        served.port,
        "/v1/completions",
        {
            "prompt": prompt,
            "max_tokens": max_tokens,
            "temperature": 0,
            "echo": True,
            "logprobs": 5,
            "ignore_eos": True,
            "return_token_ids": True,
        },
    )
    assert status == 200, reply
    assert reply["usage"]["prompt_tokens"] == len(prompt)
    assert reply["usage"]["completion_tokens"] == max_tokens
    choice: dict[str, Any] = reply["choices"][0]
    assert choice["finish_reason"] == "length"
    return choice


def assert_agrees(served: Launched, saved: SavedModel, prompt: list[int], max_tokens: int) -> None:
    """Every position's own log probability and its top five are Transformers'."""
    choice = complete(served, prompt, max_tokens)
    ids, found = prompt + choice["token_ids"], choice["logprobs"]
    assert {len(values) for values in found.values()} == {len(prompt) + max_tokens}
    assert found["token_logprobs"][0] is None
    assert found["top_logprobs"][0] is None
    expected = saved.log_probabilities(ids)
    own = torch.tensor(found["token_logprobs"][1:], dtype=torch.float64)
    difference = (own - expected[torch.arange(len(ids) - 1), ids[1:]]).abs()
    top = torch.tensor([sorted(entry.values(), reverse=True)[:5] for entry in found["top_logprobs"][1:]])
    top_difference = (top.reshape(-1, 5) - expected[:-1].topk(5).values).abs()
    worst = torch.cat([difference, top_difference.flatten()]).max() if len(ids) > 1 else torch.zeros(())
    print(f"{len(prompt)} + {max_tokens} tokens: largest difference {worst:.1e}")
    assert worst <= TOLERANCE
    for place, token_id in enumerate(choice["token_ids"], start=len(prompt) - 1):
        assert expected[place].max() - expected[place, token_id] <= TOLERANCE, "not the most likely token"


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("max_tokens", [0, NUM_OUTPUT_TOKENS])
def test_an_fp32_folder_gives_transformers_log_probabilities_of_every_position(
    served_fp32: Launched, fp32: SavedModel, length: int, max_tokens: int
) -> None:
    assert min(LENGTHS[1:]) > SHAPE.dense_limit
    assert_agrees(served_fp32, fp32, prompt_of(length), max_tokens)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("max_tokens", [0, NUM_OUTPUT_TOKENS])
def test_a_bf16_folder_gives_transformers_log_probabilities_of_every_position(
    served_bf16: Launched, bf16: SavedModel, length: int, max_tokens: int
) -> None:
    assert_agrees(served_bf16, bf16, prompt_of(length), max_tokens)


def test_beside_a_bare_tokenizer_chat_names_the_missing_template_and_text_is_served(served_fp32: Launched) -> None:
    for path in ("/v1/chat/completions", "/tokenize"):
        status, reply = post(served_fp32.port, path, CHAT)
        assert status == 400
        assert reply["error"]["type"] == "invalid_request_error"
        assert "chat template" in reply["error"]["message"]
    status, reply = post(served_fp32.port, "/v1/completions", {"prompt": "hello world", "max_tokens": 4})
    assert status == 200
    assert reply["usage"]["prompt_tokens"] == len(build_tokenizer().encode("hello world").ids)


def test_without_a_tokenizer_token_ids_are_served_and_text_is_refused_by_name(
    served_bf16: Launched, bf16: SavedModel
) -> None:
    for path, body in (
        ("/v1/chat/completions", CHAT),
        ("/v1/completions", {"prompt": "hello"}),
        ("/tokenize", {"prompt": "hello"}),
    ):
        status, reply = post(served_bf16.port, path, body)
        assert status == 400, (path, reply)
        assert "tokenizer" in reply["error"]["message"], path
    # Tokens are named by their ids, so that the choice of the top five can be compared too.
    entries = complete(served_bf16, prompt_of(30), 0)["logprobs"]["top_logprobs"][1:]
    expected = bf16.log_probabilities(prompt_of(30))
    for entry, row in zip(entries, expected[:-1], strict=True):
        for name, value in entry.items():
            assert abs(row[int(name.removeprefix("token_id:"))] - value) <= TOLERANCE


def test_one_rank_gives_the_same_log_probabilities(launch: Launch, bf16: SavedModel) -> None:
    served = launch(bf16.folder, ranks=1)
    for length in LENGTHS:
        assert_agrees(served, bf16, prompt_of(length), NUM_OUTPUT_TOKENS)


def test_dtype_bfloat16_is_as_close_to_fp32_as_transformers_bf16_is(launch: Launch, bf16: SavedModel) -> None:
    served = launch(bf16.folder, ranks=1, dtype="bfloat16")
    # Below the dense limit: in bf16 selections flip at gaps that fp32 resolves.
    prompt = prompt_of(SHAPE.dense_limit - 1)
    truth = bf16.log_probabilities(prompt)
    theirs = run_reference(load(bf16.folder, torch.bfloat16), prompt).logits.double().log_softmax(dim=-1)
    places = torch.arange(len(prompt) - 1)
    own = torch.tensor(complete(served, prompt, 0)["logprobs"]["token_logprobs"][1:], dtype=torch.float64)
    errors = [(found - truth[places, prompt[1:]]).abs().median() for found in (own, theirs[places, prompt[1:]])]
    print(f"median error: ours {errors[0]:.1e}, Transformers' {errors[1]:.1e}")
    assert 0 < errors[0] <= 2 * errors[1]
