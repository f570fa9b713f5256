"""hc_pre and hc_post: agreement with float64 and Transformers, equal bits in every batch, refused inputs."""

import pytest
import torch
from transformers.models.glm5_next.configuration_glm5_next import Glm5NextTextConfig
from transformers.models.glm5_next.modeling_glm5_next import Glm5NextTextHyperConnection

from support.row_invariance import check_row_invariance, same_bits
from twinspark_kernels.hyper_connection import hc_post, hc_pre
from twinspark_kernels.row_class import RowClass

RMS_EPS, HC_EPS, ITERATIONS = 1e-5, 1e-6, 20
Triple = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def _site(hidden: int) -> Triple:
    """fn, base and scale, all away from the values that would hide a fault."""
    return torch.randn(24, 4 * hidden) / (2 * hidden**0.5), torch.randn(24), torch.tensor([0.7, 1.3, 1.9])


def _pre(streams: torch.Tensor, site: Triple, row_class: RowClass = RowClass.DECODE) -> Triple:
    return hc_pre(streams, *site, rms_eps=RMS_EPS, hc_eps=HC_EPS, sinkhorn_iters=ITERATIONS, row_class=row_class)


def _float64_pre(streams: torch.Tensor, site: Triple) -> Triple:
    fn, base, scale = (tensor.double() for tensor in site)
    flat = streams.double().flatten(1)
    m = flat @ fn.T / (flat.square().mean(-1, keepdim=True) + RMS_EPS).sqrt()
    pre = torch.sigmoid(m[:, :4] * scale[0] + base[:4]) + HC_EPS
    post = 2 * torch.sigmoid(m[:, 4:8] * scale[1] + base[4:8])
    comb = torch.softmax((m[:, 8:] * scale[2] + base[8:]).view(-1, 4, 4), -1) + HC_EPS
    comb = comb / (comb.sum(-2, keepdim=True) + HC_EPS)
    for _ in range(ITERATIONS - 1):
        comb = comb / (comb.sum(-1, keepdim=True) + HC_EPS)
        comb = comb / (comb.sum(-2, keepdim=True) + HC_EPS)
    return torch.einsum("ts,tsd->td", pre, streams.double()), post, comb


@pytest.mark.parametrize("hidden", [4, 24, 100, 256])
def test_hyper_connection_is_the_float64_formula(hidden: int) -> None:
    streams, site, y = torch.randn(33, 4, hidden), _site(hidden), torch.randn(33, hidden)
    got, expected = _pre(streams, site), _float64_pre(streams, site)
    for one, other in zip(got, expected, strict=True):
        torch.testing.assert_close(one, other.float(), rtol=1e-5, atol=1e-5)  # fp32 dots of 4 D values
    mixed = expected[1].unsqueeze(2) * y.unsqueeze(1) + torch.einsum("tjs,tjd->tsd", expected[2], streams.double())
    torch.testing.assert_close(hc_post(streams, y, *got[1:]), mixed.float(), rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize(("sinkhorn_iters", "hc_eps"), [(1, HC_EPS), (3, 0.01), (20, HC_EPS)])
def test_hyper_connection_agrees_with_transformers(sinkhorn_iters: int, hc_eps: float) -> None:
    """The large eps shows each place where it is added: the published one is below the tolerance."""
    config = Glm5NextTextConfig(
        hidden_size=64, hc_mult=4, hc_sinkhorn_iters=sinkhorn_iters, hc_eps=hc_eps, rms_norm_eps=RMS_EPS
    )
    module, site = Glm5NextTextHyperConnection(config), _site(64)
    for parameter, value in zip((module.fn, module.base, module.scale), site, strict=True):
        parameter.data.copy_(value)
    streams = torch.randn(1, 19, 4, 64)
    post, comb, branch = (tensor[0].detach() for tensor in module(streams))
    got = hc_pre(
        streams[0],
        *site,
        rms_eps=RMS_EPS,
        hc_eps=hc_eps,
        sinkhorn_iters=sinkhorn_iters,
        row_class=RowClass.PROMPT,
    )
    for one, other in zip(got, (branch, post, comb), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)  # fp32 on both sides, other orders of addition


def test_comb_ends_with_a_column_normalization() -> None:
    comb = _pre(torch.randn(50, 4, 24) * 5, _site(24))[2]
    column_error = (comb.sum(1) - 1).abs().max()
    row_error = (comb.sum(2) - 1).abs().max()
    assert column_error < 3e-6 < row_error


def test_bfloat16_streams_are_rounded_once() -> None:
    streams, site, y = torch.randn(6, 4, 100).bfloat16(), _site(100), torch.randn(6, 100)
    branch, post, comb = _pre(streams, site)
    exact_branch, exact_post, exact_comb = _pre(streams.float(), site)
    assert same_bits(branch, exact_branch.bfloat16())
    assert same_bits(post, exact_post)
    assert same_bits(comb, exact_comb)
    assert same_bits(hc_post(streams, y, post, comb), hc_post(streams.float(), y, post, comb).bfloat16())


@pytest.mark.parametrize("row_class", list(RowClass), ids=lambda row_class: row_class.name)
@pytest.mark.parametrize(
    ("hidden", "dtype"), [*((hidden, torch.float32) for hidden in (4, 24, 100, 1000, 256)), (100, torch.bfloat16)]
)
def test_hyper_connection_gives_a_row_the_same_bits_in_every_batch(
    hidden: int, dtype: torch.dtype, row_class: RowClass
) -> None:
    site = _site(hidden)

    def run(streams: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        branch, post, comb = _pre(streams, site, row_class)
        return branch, post, comb, hc_post(streams, y, post, comb)

    check_row_invariance(run, lambda n: (torch.randn(n, 4, hidden).to(dtype), torch.randn(n, hidden).to(dtype)))


def test_refused_inputs_name_the_argument() -> None:
    site = _site(8)
    with pytest.raises(ValueError, match=r"^streams: "):
        _pre(torch.zeros(2, 3, 8), site)
    with pytest.raises(ValueError, match=r"^streams: must be contiguous"):
        _pre(torch.zeros(2, 8, 4).mT, site)
    with pytest.raises(ValueError, match=r"^fn: must be float32 \[24, 36\]"):
        _pre(torch.zeros(2, 4, 9), site)
    with pytest.raises(ValueError, match=r"^base: .*bfloat16"):
        _pre(torch.zeros(2, 4, 8), (site[0], site[1].bfloat16(), site[2]))
    with pytest.raises(ValueError, match=r"^scale: "):
        _pre(torch.zeros(2, 4, 8), (site[0], site[1], torch.zeros(1)))
    with pytest.raises(ValueError, match=r"^sinkhorn_iters: "):
        hc_pre(torch.zeros(2, 4, 8), *site, rms_eps=RMS_EPS, hc_eps=HC_EPS, sinkhorn_iters=0, row_class=RowClass.DECODE)
    streams, post, comb = torch.zeros(2, 4, 8), torch.zeros(2, 4), torch.zeros(2, 4, 4)
    with pytest.raises(ValueError, match=r"^y: must be \[2, 8\]"):
        hc_post(streams, torch.zeros(2, 9), post, comb)
    with pytest.raises(ValueError, match=r"^post: "):
        hc_post(streams, torch.zeros(2, 8), post[:1], comb)
    with pytest.raises(ValueError, match=r"^comb: "):
        hc_post(streams, torch.zeros(2, 8), post, comb.double())
