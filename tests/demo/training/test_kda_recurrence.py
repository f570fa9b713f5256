"""The recurrence in PyTorch: its two forms against each other and against the definition that serves."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from twinspark_demo.training.kda_recurrence import chunked, kda_recurrence, reference
from twinspark_kernels.kda import KdaInputs, KdaParams, kda_recurrent
from twinspark_kernels.kda.inputs import prepare_rows

LENGTH = 40  # not a multiple of a chunk


def make_rows(lowest: float, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    """q, k, v, log_decay, beta of 2 rows, 2 heads, K = 16, V = 8; log decays between lowest and 0."""
    generator = torch.Generator().manual_seed(3)
    q, k = (F.normalize(torch.randn(2, LENGTH, 2, 16, generator=generator), dim=-1) for _ in range(2))
    v = torch.randn(2, LENGTH, 2, 8, generator=generator)
    log_decay = lowest * torch.rand(2, LENGTH, 2, 16, generator=generator)
    beta = torch.rand(2, LENGTH, 2, generator=generator)
    return [x.to(dtype).requires_grad_() for x in (q / 4, k, v, log_decay, beta)]


def make_starts(*tokens: int) -> Tensor:
    """Documents of the second row start at these tokens, the first row is one document."""
    starts = torch.zeros(2, LENGTH, dtype=torch.bool)
    starts[1, list(tokens)] = True
    return starts


@pytest.mark.parametrize("lowest", [0.0, -0.1, -5.0, -10.0])
def test_chunks_give_the_outputs_and_gradients_of_the_recurrence(lowest: float) -> None:
    rows, starts = make_rows(lowest), make_starts(0, 5, 16, 30, 31)
    d_o = torch.randn(2, LENGTH, 2, 8, dtype=torch.float64)
    found, wanted = (op.kda_recurrence(*[*rows, starts]) for op in (chunked, reference))
    torch.testing.assert_close(found, wanted)
    torch.testing.assert_close(torch.autograd.grad(found, rows, d_o), torch.autograd.grad(wanted, rows, d_o))


def test_chunks_in_fp32_stay_close_to_float64_under_the_strongest_decay() -> None:
    exact, starts = make_rows(-10.0), make_starts(21)
    with torch.no_grad():
        exact[3].fill_(-10.0)
    single = [x.detach().float().requires_grad_() for x in exact]
    found = torch.autograd.grad(chunked.kda_recurrence(*[*single, starts]).sum(), single)
    wanted = torch.autograd.grad(reference.kda_recurrence(*[*exact, starts]).sum(), exact)
    for x, y in zip(found, wanted, strict=True):
        assert (x - y).norm() <= 1e-5 * y.norm()  # fp32 sums of 16 tokens at a time


def test_the_outputs_are_those_of_the_op_that_serves() -> None:
    generator = torch.Generator().manual_seed(5)
    q, k, v, gate = (torch.randn(LENGTH, 2, 16, generator=generator) for _ in range(4))
    inputs = KdaInputs(q, k, v, gate, torch.randn(LENGTH, 2, generator=generator))
    params = KdaParams(torch.randn(2, generator=generator), torch.randn(2, 16, generator=generator), -5.0)
    slots = torch.tensor([0] * 13 + [1] * (LENGTH - 13))
    positions = torch.cat((torch.arange(13), torch.arange(LENGTH - 13)))
    wanted = kda_recurrent(inputs, params, torch.zeros(2, 2, 16, 16), slots, positions)
    rows = prepare_rows(inputs, params)
    ours = (rows.q, rows.k, rows.v, rows.log_decay, rows.beta, positions == 0)
    found = kda_recurrence(*(x[None] for x in ours))
    torch.testing.assert_close(found[0], wanted, rtol=0, atol=3e-6)  # fp32 sums in another order


def test_a_document_is_the_same_behind_another_one() -> None:
    rows, starts = make_rows(-0.1), make_starts(21)
    alone = [x[1:, 21:] for x in rows]
    wanted = kda_recurrence(*[*alone, torch.zeros(1, LENGTH - 21, dtype=torch.bool)])
    torch.testing.assert_close(kda_recurrence(*[*rows, starts])[1:, 21:], wanted)


def test_no_gradient_crosses_the_start_of_a_document() -> None:
    rows = make_rows(-0.1)
    d_rows = torch.autograd.grad(kda_recurrence(*[*rows, make_starts(21)])[1, 21:].sum(), rows)
    assert max(x[1, :21].abs().max() for x in d_rows) < 1e-12  # log_decay's is a sum that cancels


def test_autocast_does_not_lower_the_precision() -> None:
    rows, starts = make_rows(-1.0, torch.float32), make_starts(21).to(torch.uint8)
    wanted = kda_recurrence(*[*rows, starts])
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(kda_recurrence(*[*rows, starts]), wanted)


def test_values_in_bf16_give_outputs_and_gradients_in_bf16() -> None:
    q, k, v, log_decay, beta = make_rows(-1.0, torch.float32)
    half = [x.detach().bfloat16().requires_grad_() for x in (q, k, v)]
    o = kda_recurrence(*[*half, log_decay, beta, make_starts(21)])
    gradients = torch.autograd.grad(o.float().sum(), [*half, log_decay, beta])
    assert [x.dtype for x in (o, *gradients)] == [torch.bfloat16] * 4 + [torch.float32] * 2


def test_shapes_and_dtypes_that_do_not_fit_are_refused() -> None:
    q, k, v, log_decay, beta = make_rows(-1.0)
    starts = make_starts(21)
    with pytest.raises(ValueError, match="q, k, log_decay"):
        kda_recurrence(q, k[:, 1:], v, log_decay, beta, starts)
    with pytest.raises(ValueError, match="v, beta, starts"):
        kda_recurrence(q, k, v, log_decay, beta, starts[:, 1:])
    with pytest.raises(TypeError, match="starts"):
        kda_recurrence(q, k, v, log_decay, beta, starts.long())
