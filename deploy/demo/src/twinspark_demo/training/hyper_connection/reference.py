"""Definition of the trainable hyper-connection: plain torch with autograd, statistics and coefficients in fp32.

Rows of `fn`, `base` and of the coefficients: 0-3 pre, 4-7 post, 8-23 comb (row-major, source stream first).
"""

import torch

STREAMS = 4
COEFFICIENTS = STREAMS + STREAMS + STREAMS * STREAMS


def hc_pre(
    streams: torch.Tensor,
    fn: torch.Tensor,
    base: torch.Tensor,
    scale: torch.Tensor,
    *,
    rms_eps: float,
    hc_eps: float,
    sinkhorn_iters: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """u [N, D] in the dtype of the streams, post [N, 4] and comb [N, 4, 4] in fp32 (fp64 for fp64 streams)."""
    values = _wide(streams)
    flat = values.flatten(1)
    rms = torch.rsqrt(flat.square().mean(-1, keepdim=True) + rms_eps)
    mix = flat @ _wide(fn.to(streams.dtype)).T * rms
    pre_mix, post_mix, comb_mix = mix.split((STREAMS, STREAMS, STREAMS * STREAMS), 1)
    pre_base, post_base, comb_base = base.split((STREAMS, STREAMS, STREAMS * STREAMS))
    pre = torch.sigmoid(pre_mix * scale[0] + pre_base) + hc_eps
    post = torch.sigmoid(post_mix * scale[1] + post_base) * 2.0
    comb = sinkhorn((comb_mix * scale[2] + comb_base).view(-1, STREAMS, STREAMS), hc_eps, sinkhorn_iters)
    return (pre.unsqueeze(2) * values).sum(1).to(streams.dtype), post, comb


def sinkhorn(logits: torch.Tensor, eps: float, iterations: int) -> torch.Tensor:
    """[N, 4, 4]: softmax of each row + eps; columns; then (rows, columns) `iterations` - 1 times, each by sum + eps."""
    comb = torch.softmax(logits, -1) + eps
    comb = comb / (comb.sum(1, keepdim=True) + eps)
    for _ in range(iterations - 1):
        comb = comb / (comb.sum(2, keepdim=True) + eps)
        comb = comb / (comb.sum(1, keepdim=True) + eps)
    return comb


def hc_post(streams: torch.Tensor, y: torch.Tensor, post: torch.Tensor, comb: torch.Tensor) -> torch.Tensor:
    """[N, 4, D] in the dtype of streams: post[s] * y + sum over j of comb[j, s] * streams[j], rounded once."""
    branch = post.unsqueeze(2) * _wide(y).unsqueeze(1)
    return (branch + torch.einsum("njs,njd->nsd", comb, _wide(streams))).to(streams.dtype)


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if tensor.dtype == torch.float64 else tensor.float()
