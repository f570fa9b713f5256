"""grouped_experts: agreement with float64, Transformers and exl3_linear; equal bits in every batch; refused inputs."""

import pytest
import torch
from transformers.models.glm5_next.configuration_glm5_next import Glm5NextTextConfig
from transformers.models.glm5_next.modeling_glm5_next import Glm5NextTextExperts

from support.row_invariance import check_row_invariance, same_bits
from twinspark_kernels.exl3 import Exl3Weight, exl3_linear
from twinspark_kernels.experts import Exl3Experts, PlainExperts, grouped_experts
from twinspark_kernels.row_class import RowClass
from twinspark_kernels.swiglu import swiglu

LIMIT = 1.5  # low enough for both clamps to act
DECODE = RowClass.DECODE


def _plain(experts: int, hidden: int, width: int) -> PlainExperts:
    return PlainExperts(torch.randn(experts, 2 * width, hidden) / hidden**0.5, torch.randn(experts, hidden, width))


def _exl3(experts: int, hidden: int, width: int) -> Exl3Experts:
    def projection(rows: int, columns: int) -> Exl3Weight:
        inner = (torch.randn(experts, rows, columns) / rows**0.5).half().float()
        return Exl3Weight(inner, torch.randn(experts, rows).half(), torch.randn(experts, columns).half())

    return Exl3Experts(projection(hidden, width), projection(hidden, width), projection(width, hidden))


def _routing(rows: int, experts: int, slots: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Distinct experts a row, in random order, and random weights."""
    return torch.rand(rows, experts).argsort(-1)[:, :slots].contiguous(), torch.rand(rows, slots)


@pytest.mark.parametrize(("rows", "hidden", "width"), [(1, 24, 20), (37, 100, 36), (200, 64, 32)])
def test_plain_experts_are_the_float64_formula(rows: int, hidden: int, width: int) -> None:
    experts, x = _plain(5, hidden, width), torch.randn(rows, hidden)
    ids, weights = _routing(rows, 5, 2)
    gate, up = torch.einsum("tkfd,td->tkf", experts.gate_up.double()[ids], x.double()).chunk(2, -1)
    gate, up = gate.clamp(max=LIMIT), up.clamp(-LIMIT, LIMIT)
    down = torch.einsum("tkdf,tkf->tkd", experts.down.double()[ids], gate * torch.sigmoid(gate) * up)
    expected = (down * weights.double().unsqueeze(2)).sum(1)
    got = grouped_experts(x, ids, weights, experts, swiglu_limit=LIMIT, row_class=RowClass.PROMPT)
    torch.testing.assert_close(got, expected.float(), rtol=1e-5, atol=1e-5)  # fp32 sums


def test_plain_experts_agree_with_transformers() -> None:
    config = Glm5NextTextConfig(
        hidden_size=48, moe_intermediate_size=40, n_routed_experts=6, swiglu_limit=LIMIT, num_experts_per_tok=3
    )
    config._experts_implementation = "eager"
    module, experts = Glm5NextTextExperts(config), _plain(6, 48, 40)
    module.gate_up_proj.data.copy_(experts.gate_up)
    module.down_proj.data.copy_(experts.down)
    x, (ids, weights) = torch.randn(30, 48), _routing(30, 6, 3)
    got = grouped_experts(x, ids, weights, experts, swiglu_limit=LIMIT, row_class=DECODE)
    torch.testing.assert_close(
        got, module(x, ids, weights).detach(), rtol=1e-5, atol=1e-5
    )  # experts added in another order


def test_an_exl3_pair_is_three_exl3_linears_and_slots_add_in_order() -> None:
    experts, x = _exl3(4, 256, 128), torch.randn(9, 256)
    ids, weights = _routing(9, 4, 3)
    got = grouped_experts(x, ids, weights, experts, swiglu_limit=LIMIT, row_class=DECODE)
    for row in range(9):
        terms = []
        for expert, weight in zip(ids[row].tolist(), weights[row], strict=True):
            one = x[row : row + 1]
            gate, up = (exl3_linear(one, _pick(part, expert), row_class=DECODE) for part in (experts.gate, experts.up))
            terms.append(exl3_linear(swiglu(gate, up, LIMIT), _pick(experts.down, expert), row_class=DECODE) * weight)
        assert same_bits(got[row : row + 1], (terms[0] + terms[1]) + terms[2])


def _pick(stacked: Exl3Weight, expert: int) -> Exl3Weight:
    return Exl3Weight(stacked.inner[expert], stacked.suh[expert], stacked.svh[expert])


def test_bfloat16_rows_are_summed_over_slots_in_fp32() -> None:
    experts = _plain(4, 24, 20)
    rounded = PlainExperts(experts.gate_up.bfloat16(), experts.down.bfloat16())
    x, (ids, weights) = torch.randn(5, 24).bfloat16(), _routing(5, 4, 2)
    got = grouped_experts(x, ids, weights, rounded, swiglu_limit=LIMIT, row_class=DECODE)
    single = [
        grouped_experts(x, ids[:, slot, None], weights[:, slot, None], rounded, swiglu_limit=LIMIT, row_class=DECODE)
        for slot in (0, 1)
    ]
    assert got.dtype == torch.float32
    assert same_bits(got, single[0] + single[1])


@pytest.mark.parametrize("row_class", list(RowClass), ids=lambda row_class: row_class.name)
@pytest.mark.parametrize(
    ("hidden", "width", "count", "slots"), [(4, 4, 3, 1), (24, 100, 12, 2), (100, 36, 20, 4), (1000, 24, 3, 2)]
)
def test_plain_experts_give_a_row_the_same_bits_in_every_batch(
    hidden: int, width: int, count: int, slots: int, row_class: RowClass
) -> None:
    experts = _plain(count, hidden, width)
    check_row_invariance(
        lambda x, ids, weights: grouped_experts(x, ids, weights, experts, swiglu_limit=LIMIT, row_class=row_class),
        lambda n: (torch.randn(n, hidden), *_routing(n, count, slots)),
    )


@pytest.mark.parametrize("row_class", list(RowClass), ids=lambda row_class: row_class.name)
def test_exl3_experts_give_a_row_the_same_bits_in_every_batch(row_class: RowClass) -> None:
    experts = _exl3(12, 256, 128)
    check_row_invariance(
        lambda x, ids, weights: grouped_experts(x, ids, weights, experts, swiglu_limit=LIMIT, row_class=row_class),
        lambda n: (torch.randn(n, 256), *_routing(n, 12, 2)),
    )


def test_no_rows_give_no_rows() -> None:
    ids, weights = torch.zeros(0, 2, dtype=torch.int64), torch.zeros(0, 2)
    for experts, hidden in ((_plain(3, 24, 20), 24), (_exl3(3, 128, 128), 128)):
        got = grouped_experts(torch.zeros(0, hidden), ids, weights, experts, swiglu_limit=LIMIT, row_class=DECODE)
        assert got.shape == (0, hidden)


def test_refused_inputs_name_the_argument() -> None:
    experts = _plain(3, 24, 20)
    x, ids, weights = torch.zeros(2, 24), torch.zeros(2, 2, dtype=torch.int64), torch.zeros(2, 2)

    def run(x: torch.Tensor, ids: torch.Tensor, weights: torch.Tensor) -> None:
        grouped_experts(x, ids, weights, experts, swiglu_limit=LIMIT, row_class=DECODE)

    with pytest.raises(ValueError, match=r"^x: must be \[rows, 24\]"):
        run(torch.zeros(2, 23), ids, weights)
    for wrong in (ids[:1], ids.int(), ids[0]):
        with pytest.raises(ValueError, match=r"^expert_ids: must be int64 \[2, slots\]"):
            run(x, wrong, weights)
    for wrong in (weights[:, :1], weights.double()):
        with pytest.raises(ValueError, match=r"^expert_weights: must be float32 \[2, 2\]"):
            run(x, ids, wrong)
    with pytest.raises(ValueError, match=r"^expert_ids: must all be below 3, got 3"):
        run(x, ids + 3, weights)
