"""The forward against Transformers: every position, both classes of rows, one and two ranks, whole and chunked."""

import pytest

from support.forward_case import forward_case
from support.forward_steps import Step, prompt_steps, window_steps
from support.hf_models import HfShape
from support.hf_reference import assert_clamps_act
from support.logit_agreement import assert_few_near_ties, compare

SHAPES = {
    "mixed": HfShape("kKDd"),
    "kda-only": HfShape("k", hidden=36, kda_heads=4, kda_head_dim=12, seed=1),
    "dsa-only-pool-16": HfShape("D", hidden=100, pool=16, index_topk=64, index_heads=3, seed=2),
    "moe-pool-16": HfShape("KdK", hidden=64, pool=16, index_topk=128, experts=10, experts_per_token=3, seed=3),
    "late-limit": HfShape("kD", hidden=52, index_topk=512, shared_experts=2, seed=4),
    "pool-1": HfShape("Dk", hidden=40, pool=1, index_topk=24, seed=8),
    "twelve-layers": HfShape("kkkDKKKDKKKD", hidden=64, seed=5),
}
SHORT_LENGTHS = (1, 2, 63, 64, 65, 200)
LONG_LENGTH = 1000

both_world_sizes = pytest.mark.parametrize("world_size", [1, 2])
all_shapes = pytest.mark.parametrize("shape", list(SHAPES.values()), ids=list(SHAPES))


@both_world_sizes
@all_shapes
def test_prompt_logits_agree_with_transformers_at_all_positions(shape: HfShape, world_size: int) -> None:
    case = forward_case(shape)
    plans = [(length, prompt_steps(length)) for length in SHORT_LENGTHS] + [
        (65, prompt_steps(65, 64)),
        (200, prompt_steps(200, 64)),
    ]
    assert_few_near_ties([compare(case, case.reference(length), steps, world_size) for length, steps in plans])


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [None, 64, 320])
@both_world_sizes
@all_shapes
def test_long_prompt_logits_agree_with_transformers(shape: HfShape, world_size: int, chunk: int | None) -> None:
    case = forward_case(shape)
    assert_few_near_ties([compare(case, case.reference(LONG_LENGTH), prompt_steps(LONG_LENGTH, chunk), world_size)])


@both_world_sizes
@all_shapes
def test_decode_windows_agree_with_transformers(shape: HfShape, world_size: int) -> None:
    """Teacher-forced: the reference's prompt rows and our decode rows are the same in exact arithmetic."""
    case = forward_case(shape)
    plans: list[list[Step]] = [
        prompt_steps(33) + window_steps(33, [1, 2, 16, 5, 1, 7]),
        prompt_steps(150) + window_steps(150, [16, 1, 1, 3, 16, 13]),
    ]
    assert_few_near_ties([compare(case, case.reference(200), steps, world_size) for steps in plans])


@all_shapes
def test_both_clamps_act_in_every_mlp(shape: HfShape) -> None:
    assert_clamps_act(forward_case(shape).reference(200))
