"""The trainable forward against Transformers' Glm5NextForConditionalGeneration with the same random weights, fp32."""

import pytest
import torch

from support.demo_models import model_with, pack
from support.forward_case import forward_case
from support.hf_models import HfShape
from support.hf_reference import assert_clamps_act
from support.published_names import published
from twinspark_demo.training.model import ForwardOptions

SELECTING = HfShape("kKdD", index_topk=32)
DENSE = HfShape("KDkd", index_topk=4096, seed=1)
SMALLEST_GAP = 1e-5  # of the largest score; below it fp32 may order two pools or experts either way


@pytest.mark.parametrize(
    ("shape", "length", "sparse"),
    [(SELECTING, 35, False), (SELECTING, 112, True), (DENSE, 112, False), (DENSE, 112, True)],
    ids=["dense-limit", "selects", "dense", "nothing-to-select"],
)
def test_logits_are_those_of_transformers(shape: HfShape, length: int, sparse: bool) -> None:
    case = forward_case(shape)
    reference = case.reference(length)
    assert_clamps_act(reference)
    selections = [*reference.pools.values(), *reference.experts.values()]
    gaps = torch.cat([selection.gap_at_cut() for selection in selections])
    # Equal scores (no head sees anything in either pool: exactly 0) go to the earlier pool on both sides.
    assert gaps[gaps > 0].min() > SMALLEST_GAP
    model = model_with(case.config, published(case.config, [case.weights(0, 1)]))
    # Rows after the prompt are padding: nothing before them may see them.
    with torch.no_grad():
        result = model.predictions(pack([case.prompt(length)]), ForwardOptions(sparse=sparse))
    error = (result.logits[0, :length] - reference.logits).abs().max()
    assert error < 1e-4 * reference.logits.abs().max()


def test_dense_attention_is_not_what_transformers_computes_past_the_limit() -> None:
    case = forward_case(SELECTING)
    model = model_with(case.config, published(case.config, [case.weights(0, 1)]))
    with torch.no_grad():
        result = model.predictions(pack([case.prompt(112)]), ForwardOptions(sparse=False))
    limit = SELECTING.dense_limit - 1
    error = (result.logits[0, :112] - case.reference(112).logits).abs().amax(-1)
    assert error[:limit].max() < 1e-3
    assert error[limit:].max() > 1e-2
