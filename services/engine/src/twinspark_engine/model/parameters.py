"""The parameters of one rank, as the forward uses them: fused, split and laid out at load.

Letters: D hidden, Vw this rank's vocabulary rows, H this rank's heads of the layer's kind, K KDA head size, F this
rank's MLP width, E routed experts, Q q_lora_rank, L kv_lora_rank, N query/key size and V value size of a DSA head, Hi
and Di heads and head size of the indexer, G index_kpool. Split over ranks: heads, MLP widths, the head's vocabulary.
Replicated: embedding, norms, hyper-connections, router, indexer, latent projections, MTP's own norms and eh_proj.
Tensors have the compute dtype unless their comment says fp32. Weights of linear are [out, in].
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING

from torch import Tensor

if TYPE_CHECKING:
    from twinspark_kernels.experts import Exl3Experts, PlainExperts


@dataclass(frozen=True, slots=True)
class HyperConnection:
    """One site of a layer; all fp32. Rows of fn: 0-3 pre, 4-7 post, 8-23 comb (row-major 4x4)."""

    fn: Tensor  # [24, 4 * D] fp32
    base: Tensor  # [24] fp32
    scale: Tensor  # [3] fp32: pre, post, comb


@dataclass(frozen=True, slots=True)
class KdaWeights:
    """KDA attention. Rows of in_proj, all of which read x: q [H*K], k [H*K], v [H*K], f_a [K], g_a [K], b [H]."""

    in_proj: Tensor  # [3 * H * K + 2 * K + H, D]
    conv: Tensor  # [3 * H * K, 4] fp32: channels q, k, v; tap 3 multiplies the current row
    f_b: Tensor  # [H * K, K]
    g_b: Tensor  # [H * K, K]
    a_log: Tensor  # [H] fp32
    dt_bias: Tensor  # [H, K] fp32
    o_norm: Tensor  # [K]
    o_proj: Tensor  # [D, H * K]: a partial sum of this rank


@dataclass(frozen=True, slots=True)
class DsaWeights:
    """DSA attention with its indexer.

    Rows of in_proj, all of which read x: q_a [Q], kv_a [L], wk [Di], weights_proj [Hi], compress_gate [Di].
    w_k and w_v are laid out for head_linear: absorb maps q [T, H, N] to [T, H, L], expand maps [T, H, L] to [T, H, V].
    """

    in_proj: Tensor  # [Q + L + 2 * Di + Hi, D]
    q_a_norm: Tensor  # [Q]
    kv_a_norm: Tensor  # [L]
    q_b: Tensor  # [H * N, Q], head-major
    w_k: Tensor  # [H, N, L]
    w_v: Tensor  # [H, L, V]
    o_proj: Tensor  # [D, H * V]: a partial sum of this rank
    wq_b: Tensor  # [Hi * Di, Q], head-major; reads the normed q residual
    k_norm_weight: Tensor  # [Di]
    k_norm_bias: Tensor  # [Di]
    ape: Tensor  # [G, Di] fp32


@dataclass(frozen=True, slots=True)
class DenseMlp:
    """A clamped SwiGLU of any width: a dense layer's or the shared expert's."""

    gate_up: Tensor  # [2 * F, D]: gate rows, then up rows
    down: Tensor  # [D, F]: a partial sum of this rank


@dataclass(frozen=True, slots=True)
class MoeWeights:
    """Router, shared expert and this rank's part (by width) of every routed expert."""

    router_weight: Tensor  # [E, D]
    router_bias: Tensor  # [E] fp32: only for selection
    shared: DenseMlp
    experts: PlainExperts | Exl3Experts


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """One of the num_hidden_layers layers."""

    input_layernorm: Tensor  # [D]
    post_attention_layernorm: Tensor  # [D]
    attn_hc: HyperConnection
    ffn_hc: HyperConnection
    attention: KdaWeights | DsaWeights
    mlp: DenseMlp | MoeWeights


@dataclass(frozen=True, slots=True)
class MtpWeights:
    """The layer that drafts: no hyper-connections, no own embedding or head."""

    enorm: Tensor  # [D]
    hnorm: Tensor  # [D]
    eh_proj: Tensor  # [D, 2 * D]: columns of the embedding half, then of the hidden half
    input_layernorm: Tensor  # [D]
    post_attention_layernorm: Tensor  # [D]
    attention: DsaWeights
    mlp: MoeWeights
    shared_head_norm: Tensor  # [D]


@dataclass(frozen=True, slots=True)
class ModelWeights:
    """Everything that one rank holds. mtp is None where the checkpoint has no MTP layer."""

    embed: Tensor  # [vocab_size, D]
    layers: tuple[LayerWeights, ...]
    norm: Tensor  # [D]
    head: Tensor  # [Vw, D]: vocabulary rows vocab_offset and up
    vocab_offset: int
    mtp: MtpWeights | None

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors."""
        return sum(tensor.nbytes for tensor in _tensors(self))


def _tensors(node: object) -> Iterator[Tensor]:
    if isinstance(node, Tensor):
        yield node
    elif isinstance(node, tuple):
        for item in node:
            yield from _tensors(item)
    elif is_dataclass(node):
        for field in fields(node):
            yield from _tensors(getattr(node, field.name))
