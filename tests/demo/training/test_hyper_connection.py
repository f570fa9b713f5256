"""The reference of the trainable hyper-connection: against the inference op of this repository, and its gradients."""

import pytest
import torch

from twinspark_demo.training import hyper_connection
from twinspark_demo.training.hyper_connection.comparison import draw_site
from twinspark_kernels import hyper_connection as inference
from twinspark_kernels.row_class import RowClass


# fp32 sums in another order; a bf16 result rounds by 4e-3.
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 1e-2)])
def test_a_site_computes_what_the_engine_computes(dtype: torch.dtype, tolerance: float) -> None:
    leaves = draw_site(19, 64, dtype).leaves
    streams, fn = leaves["streams"].detach(), leaves["fn"].detach().bfloat16().float()
    base, scale = leaves["base"].detach(), leaves["scale"].detach()
    u, post, comb = hyper_connection.hc_pre(streams, fn, base, scale)
    wanted_u, wanted_post, wanted_comb = inference.hc_pre(
        streams, fn, base, scale, rms_eps=1e-5, hc_eps=1e-6, sinkhorn_iters=20, row_class=RowClass.PROMPT
    )
    assert u.dtype == dtype
    torch.testing.assert_close(u, wanted_u, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(post, wanted_post, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(comb, wanted_comb, rtol=1e-5, atol=1e-6)
    out = hyper_connection.hc_post(streams, leaves["y"].detach(), post, comb)
    assert out.dtype == dtype
    wanted_out = inference.hc_post(streams, leaves["y"].detach(), wanted_post, wanted_comb)
    torch.testing.assert_close(out, wanted_out, rtol=tolerance, atol=tolerance)


def test_gradients_of_a_site_are_those_of_finite_differences() -> None:
    leaves = draw_site(3, 4, torch.float32).to_float64().leaves

    def site(streams: torch.Tensor, y: torch.Tensor, *parameters: torch.Tensor) -> tuple[torch.Tensor, ...]:
        u, post, comb = hyper_connection.hc_pre(streams, *parameters, sinkhorn_iters=4)
        return u, post, comb, hyper_connection.hc_post(streams, y, post, comb)

    assert torch.autograd.gradcheck(site, tuple(leaves.values()))


def test_bf16_streams_see_fn_as_a_checkpoint_stores_it() -> None:
    leaves = draw_site(5, 64, torch.bfloat16).leaves
    streams, base, scale = leaves["streams"], leaves["base"], leaves["scale"]
    exact = hyper_connection.hc_pre(streams, leaves["fn"], base, scale)
    stored = hyper_connection.hc_pre(streams, leaves["fn"].bfloat16().float(), base, scale)
    for given, wanted in zip(exact, stored, strict=True):
        assert torch.equal(given, wanted)


def test_other_shapes_are_refused() -> None:
    leaves = draw_site(5, 64, torch.float32).leaves
    streams, fn, base, scale = leaves["streams"], leaves["fn"], leaves["base"], leaves["scale"]
    with pytest.raises(ValueError, match="streams"):
        hyper_connection.hc_pre(streams[:, :3], fn, base, scale)
    with pytest.raises(ValueError, match="fn, base, scale"):
        hyper_connection.hc_pre(streams, fn[:, :64], base, scale)
    with pytest.raises(ValueError, match="y, post, comb"):
        hyper_connection.hc_post(streams, leaves["y"][:4], torch.ones(5, 4), torch.ones(5, 4, 4))
