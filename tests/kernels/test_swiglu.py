"""swiglu: agreement with float64 and Transformers' MLP, one-sided clamp, equal bits in every batch, refused inputs."""

import pytest
import torch
from transformers.models.glm5_next.configuration_glm5_next import Glm5NextTextConfig
from transformers.models.glm5_next.modeling_glm5_next import Glm5NextTextMLP

from support.row_invariance import WIDTHS, check_row_invariance, same_bits
from twinspark_kernels.linear import linear
from twinspark_kernels.row_class import RowClass
from twinspark_kernels.swiglu import swiglu

LIMIT = 2.0


def test_swiglu_is_the_float64_formula() -> None:
    gate, up = torch.randn(9, 100) * 3, torch.randn(9, 100) * 3
    wide_gate, wide_up = gate.double().clamp(max=LIMIT), up.double().clamp(-LIMIT, LIMIT)
    expected = wide_gate * torch.sigmoid(wide_gate) * wide_up
    torch.testing.assert_close(swiglu(gate, up, LIMIT), expected.float(), rtol=1e-6, atol=1e-7)  # fp32 exp and division


def test_the_gate_is_clamped_above_only_and_up_on_both_sides() -> None:
    one = torch.ones(1, 1)
    assert swiglu(one * -50, one, LIMIT) != swiglu(one * -LIMIT, one, LIMIT)
    assert swiglu(one * 50, one, LIMIT) == swiglu(one * LIMIT, one, LIMIT)
    assert swiglu(one, one * 50, LIMIT) == swiglu(one, one * LIMIT, LIMIT)
    assert swiglu(one, one * -50, LIMIT) == swiglu(one, one * -LIMIT, LIMIT)


def test_a_very_negative_gate_gives_zero() -> None:
    assert swiglu(torch.full((1, 1), -1e30), torch.ones(1, 1), LIMIT).item() == 0.0


def test_an_mlp_of_these_ops_agrees_with_transformers() -> None:
    config = Glm5NextTextConfig(hidden_size=48, intermediate_size=100, swiglu_limit=LIMIT)
    mlp = Glm5NextTextMLP(config)
    for parameter in mlp.parameters():
        parameter.data.normal_(std=0.5)
    x = torch.randn(11, 48)
    gate = linear(x, mlp.gate_proj.weight.data, row_class=RowClass.PROMPT)
    up = linear(x, mlp.up_proj.weight.data, row_class=RowClass.PROMPT)
    assert (gate > LIMIT).any() and (up.abs() > LIMIT).any()
    got = linear(swiglu(gate, up, LIMIT), mlp.down_proj.weight.data, row_class=RowClass.PROMPT)
    torch.testing.assert_close(got, mlp(x).detach(), rtol=1e-5, atol=1e-5)  # other order of fp32 sums


def test_bfloat16_is_computed_in_fp32_and_rounded_once() -> None:
    gate, up = torch.randn(3, 24).bfloat16(), torch.randn(3, 24).bfloat16()
    assert same_bits(swiglu(gate, up, LIMIT), swiglu(gate.float(), up.float(), LIMIT).bfloat16())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("width", WIDTHS)
def test_swiglu_gives_a_row_the_same_bits_in_every_batch(width: int, dtype: torch.dtype) -> None:
    def run(both: torch.Tensor) -> torch.Tensor:
        gate, up = both.chunk(2, dim=1)  # strided halves, as the model passes them
        return swiglu(gate, up, LIMIT)

    check_row_invariance(run, lambda n: ((torch.randn(n, 2 * width) * 3).to(dtype),))


def test_refused_inputs_name_the_argument() -> None:
    x = torch.zeros(2, 3)
    with pytest.raises(ValueError, match=r"^gate: "):
        swiglu(torch.zeros(3), x, LIMIT)
    with pytest.raises(ValueError, match=r"^up: must match gate \(2, 3\)"):
        swiglu(x, torch.zeros(2, 4), LIMIT)
    with pytest.raises(ValueError, match=r"^up: .*bfloat16"):
        swiglu(x, x.bfloat16(), LIMIT)
    for limit in (0.0, float("nan")):
        with pytest.raises(ValueError, match=r"^limit: "):
            swiglu(x, x, limit)
