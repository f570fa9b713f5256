"""route: agreement with float64 and Transformers, tie rule, bias only in the choice, equal bits, refused inputs."""

import pytest
import torch
from transformers.models.glm5_next import modeling_glm5_next as hf
from transformers.models.glm5_next.configuration_glm5_next import Glm5NextTextConfig

from support.row_invariance import check_row_invariance
from twinspark_kernels.router import route
from twinspark_kernels.row_class import RowClass

SCALING = 2.5


def test_route_is_the_float64_formula() -> None:
    x, weight, bias = torch.randn(50, 100), torch.randn(12, 100) / 10, torch.randn(12)
    scores = torch.sigmoid(x.double() @ weight.double().T)
    expected_ids = torch.sort(scores + bias, dim=-1, descending=True).indices[:, :3]
    chosen = scores.gather(1, expected_ids)
    expected = chosen / (chosen.sum(-1, keepdim=True) + 1e-20) * SCALING
    expert_ids, weights = route(x, weight, bias, top_k=3, scaling=SCALING, row_class=RowClass.DECODE)
    assert torch.equal(expert_ids, expected_ids)
    torch.testing.assert_close(weights, expected.float(), rtol=1e-5, atol=1e-6)  # fp32 dots


def test_route_agrees_with_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    config = Glm5NextTextConfig(
        hidden_size=64, n_routed_experts=12, num_experts_per_tok=4, routed_scaling_factor=SCALING, n_group=1
    )
    module = hf.Glm5NextTextTopkRouter(config)
    module.weight.data.normal_(std=0.2)
    module.e_score_correction_bias.normal_()
    x = torch.randn(40, 64)
    monkeypatch.setattr(torch, "topk", _stable_topk)
    _, weights, expert_ids = module(x)
    got_ids, got_weights = route(
        x, module.weight.data, module.e_score_correction_bias, top_k=4, scaling=SCALING, row_class=RowClass.PROMPT
    )
    assert torch.equal(got_ids, expert_ids)
    torch.testing.assert_close(got_weights, weights.detach(), rtol=1e-5, atol=1e-6)  # other order of fp32 sums


def _stable_topk(x: torch.Tensor, k: int, dim: int, sorted: bool = True) -> tuple[torch.Tensor, torch.Tensor]:
    values, indices = torch.sort(x, dim=dim, descending=True, stable=True)
    return values[..., :k], indices[..., :k]


@pytest.mark.parametrize("experts", [12, 288])
def test_equal_scores_go_to_the_lower_expert(experts: int) -> None:
    weight, bias = torch.zeros(experts, 24), torch.zeros(experts)
    bias[experts - 2 :] = 1.0
    expert_ids, weights = route(torch.randn(20, 24), weight, bias, top_k=4, scaling=1.0, row_class=RowClass.DECODE)
    assert expert_ids.tolist() == [[experts - 2, experts - 1, 0, 1]] * 20
    assert weights.tolist() == [[0.25] * 4] * 20


def test_the_bias_moves_the_choice_but_not_the_weights() -> None:
    x, weight = torch.randn(1, 24), torch.randn(6, 24) / 5
    scores = torch.sigmoid(x @ weight.T)[0]
    bias = torch.tensor([0.0, 0.0, 5.0, 0.0, 9.0, 0.0])
    expert_ids, weights = route(x, weight, bias, top_k=2, scaling=SCALING, row_class=RowClass.DECODE)
    assert expert_ids.tolist() == [[4, 2]]
    expected = scores[[4, 2]] / scores[[4, 2]].sum() * SCALING
    torch.testing.assert_close(weights[0], expected, rtol=1e-5, atol=0.0)  # fp32 dots


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("experts", "width"), [(4, 4), (12, 24), (288, 100), (12, 1000), (12, 256)])
def test_route_gives_a_row_the_same_bits_in_every_batch(experts: int, width: int, dtype: torch.dtype) -> None:
    weight, bias = torch.randn(experts, width).to(dtype), torch.randn(experts)
    for row_class in RowClass:
        check_row_invariance(
            lambda x, chosen=row_class: route(x, weight, bias, top_k=2, scaling=SCALING, row_class=chosen),
            lambda n: (torch.randn(n, width).to(dtype),),
        )


def test_refused_inputs_name_the_argument() -> None:
    x, weight, bias = torch.zeros(2, 8), torch.zeros(4, 8), torch.zeros(4)
    with pytest.raises(ValueError, match=r"^x: "):
        route(torch.zeros(8), weight, bias, top_k=2, scaling=1.0, row_class=RowClass.DECODE)
    with pytest.raises(ValueError, match=r"^weight: must be \[experts, 8\]"):
        route(x, torch.zeros(4, 9), bias, top_k=2, scaling=1.0, row_class=RowClass.DECODE)
    for wrong in (torch.zeros(5), bias.bfloat16()):
        with pytest.raises(ValueError, match=r"^bias: must be float32 \[4\]"):
            route(x, weight, wrong, top_k=2, scaling=1.0, row_class=RowClass.DECODE)
    for top_k in (0, 5):
        with pytest.raises(ValueError, match=r"^top_k: must be 1 to 4"):
            route(x, weight, bias, top_k=top_k, scaling=1.0, row_class=RowClass.DECODE)
