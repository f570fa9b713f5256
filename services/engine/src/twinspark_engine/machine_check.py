"""Tries, on the machine that will serve, that its CPU keeps row invariance for the shapes of the loaded weights."""

import time
from collections.abc import Iterator

import structlog
from torch import Tensor

from twinspark_engine.model.config import ModelConfig
from twinspark_engine.model.parameters import DenseMlp, DsaWeights, KdaWeights, LayerWeights, ModelWeights
from twinspark_kernels.experts import Exl3Experts, PlainExperts
from twinspark_kernels.latent_attention.reference import KEY_CHUNK
from twinspark_kernels.self_check import OpShapes, check_row_invariance
from twinspark_kernels.stateful_self_check import check_stateful_ops

log = structlog.get_logger()

Matrix = tuple[int, int]


def check_machine(config: ModelConfig, weights: ModelWeights) -> None:
    """Compare rows alone and in batches, with the threads that torch has now; well under a second for small models.

    Raises RowInvarianceError naming the op and shape that fails: replies would depend on who else is served.
    """
    started = time.monotonic()
    attentions = [layer.attention for layer in weights.layers]
    dsa = [attention for attention in attentions if isinstance(attention, DsaWeights)]
    kda = [attention for attention in attentions if isinstance(attention, KdaWeights)]
    matrices = {matrix for layer in weights.layers for matrix in _layer_matrices(layer)}
    matrices |= {_shape(weights.head), (KEY_CHUNK, config.index_head_dim)}
    heads = {shape for attention in dsa for shape in (_head_shape(attention.w_k), _head_shape(attention.w_v))}
    widths = {config.hidden_size, config.q_lora_rank, config.kv_lora_rank, config.index_head_dim, KEY_CHUNK}
    check_row_invariance(OpShapes(frozenset(matrices), frozenset(heads), frozenset(widths)))
    check_stateful_ops(
        kda={(*attention.dt_bias.shape, attention.dt_bias.shape[1]) for attention in kda},
        latents={config.kv_lora_rank} if dsa else (),
    )
    log.info("row_invariance_checked", matrices=len(matrices), seconds=round(time.monotonic() - started, 3))


def _layer_matrices(layer: LayerWeights) -> Iterator[Matrix]:
    """(out, in) of everything that `linear` multiplies by in this layer."""
    yield _shape(layer.attn_hc.fn)
    yield _shape(layer.ffn_hc.fn)
    attention = layer.attention
    yield _shape(attention.in_proj)
    yield _shape(attention.o_proj)
    if isinstance(attention, KdaWeights):
        yield _shape(attention.f_b)
        yield _shape(attention.g_b)
    else:
        yield _shape(attention.q_b)
        yield _shape(attention.wq_b)
    if isinstance(layer.mlp, DenseMlp):
        yield from _mlp_matrices(layer.mlp)
        return
    yield _shape(layer.mlp.router_weight)
    yield from _mlp_matrices(layer.mlp.shared)
    yield from _expert_matrices(layer.mlp.experts)


def _mlp_matrices(mlp: DenseMlp) -> Iterator[Matrix]:
    yield _shape(mlp.gate_up)
    yield _shape(mlp.down)


def _expert_matrices(experts: PlainExperts | Exl3Experts) -> Iterator[Matrix]:
    if isinstance(experts, PlainExperts):
        yield _shape(experts.gate_up[0])
        yield _shape(experts.down[0])
        return
    for weight in (experts.gate, experts.up, experts.down):
        yield _shape(weight.inner[0].t())


def _shape(matrix: Tensor) -> Matrix:
    outputs, width = matrix.shape
    return outputs, width


def _head_shape(weight: Tensor) -> tuple[int, int, int]:
    heads, width, outputs = weight.shape
    return heads, width, outputs
