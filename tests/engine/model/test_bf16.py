"""The forward in bf16 against Transformers in bf16: as close to the fp32 truth as Transformers' own bf16 is.

Selections flip in bf16 at gaps that fp32 resolves, so this shape chooses both of its experts and stays below the dense
limit.
"""

from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import Glm5NextForConditionalGeneration

from support.forward_case import ForwardCase, join_ranks, on_ranks
from support.forward_steps import prompt_steps, run_steps, window_steps
from support.hf_models import HfShape
from support.hf_reference import run_reference
from support.logit_agreement import row_errors
from twinspark_engine.model.model import Model
from twinspark_engine.model.state import ModelState

SHAPE = HfShape("kDkd", hidden=64, experts=2, index_topk=512, seed=6)
LENGTH = 200
# Both round at much the same places; twice leaves room for another order of additions.
MAX_RATIO = 2.0


@pytest.fixture(scope="module")
def rounded(tmp_path_factory: pytest.TempPathFactory) -> tuple[ForwardCase, Tensor, Tensor]:
    """A bf16 folder as save_pretrained writes it, its fp32 logits, and Transformers' bf16 logits."""
    folder: Path = tmp_path_factory.mktemp("bf16")
    fp32 = ForwardCase(SHAPE, folder / "fp32")
    assert fp32.config.num_hidden_layers == 4
    load = Glm5NextForConditionalGeneration.from_pretrained
    options = {"attn_implementation": "eager", "experts_implementation": "eager"}
    model = load(fp32.folder, dtype=torch.bfloat16, **options)
    model.save_pretrained(folder / "bf16")
    ids = fp32.prompt(LENGTH)
    own = run_reference(model.eval(), ids).logits.float()
    truth = run_reference(load(folder / "bf16", dtype=torch.float32, **options).eval(), ids).logits
    case = ForwardCase(SHAPE, folder / "bf16")
    case.__dict__["reference_model"] = model
    return case, truth, own


@pytest.mark.parametrize("world_size", [1, 2])
@pytest.mark.parametrize("decode_from", [LENGTH, 136], ids=["prompt", "decode"])
def test_bf16_is_as_close_to_fp32_as_transformers_bf16_is(
    rounded: tuple[ForwardCase, Tensor, Tensor], world_size: int, decode_from: int
) -> None:
    case, truth, own = rounded
    steps = prompt_steps(decode_from) + window_steps(decode_from, [16] * ((LENGTH - decode_from) // 16))

    def work(model: Model, state: ModelState) -> Tensor:
        return run_steps(model, state, [case.prompt(LENGTH)], [0], steps)[0]

    _, logits = join_ranks(case, on_ranks(case, world_size, work, LENGTH, dtype=torch.bfloat16))
    assert logits.dtype == torch.bfloat16
    ours, theirs = (row_errors(found.float(), truth[: len(logits)]) for found in (logits, own[: len(logits)]))
    print(f"median error of a row: ours {ours.median():.2e}, Transformers' {theirs.median():.2e}")
    assert ours.median() <= MAX_RATIO * theirs.median()
    assert ours.max() <= MAX_RATIO * theirs.max()
