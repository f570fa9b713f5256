"""The indexer: what it selects, the loss that teaches it, and that nothing else learns from that loss."""

import math

import pytest
import torch
from torch import Tensor

from support.demo_models import pack, random_documents, random_model, small_config
from twinspark_demo.training.model import DemoModel, ForwardOptions
from twinspark_demo.training.model.chains import Chains
from twinspark_demo.training.model.indexer import Indexer, best_pools
from twinspark_demo.training.model.layout import RowLayout
from twinspark_demo.training.model.parameters import Weights
from twinspark_engine.model.weights.names import layer_prefix

CONFIG = small_config()
ROWS = 40
CUT = CONFIG.num_selected_pools


def _inputs(length: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """x [1, T, D], q residual [1, T, R], q and k [1, H, T, N]."""
    generator = torch.Generator().manual_seed(7)
    heads, size = CONFIG.num_attention_heads, CONFIG.qk_nope_head_dim
    shapes = ((1, length, CONFIG.hidden_size), (1, length, CONFIG.q_lora_rank), *[(1, heads, length, size)] * 2)
    x, residual, q, k = (torch.randn(shape, generator=generator) for shape in shapes)
    return x, residual, q, k


def _indexer(model: DemoModel, layout: RowLayout) -> Indexer:
    tensors: dict[str, Tensor] = dict(model.named_parameters())
    return Indexer(Weights(tensors, torch.float32, f"{layer_prefix(2)}self_attn.indexer."), CONFIG, Chains(), layout)


def _divergence_by_loops(
    indexer: Indexer, inputs: tuple[Tensor, ...], starts: list[int], rows: list[int]
) -> tuple[float, int]:
    """float64, one query after the other; with the number of rows that count double."""
    w = {name: indexer.w.master(name).detach().double() for name in ("wq_b.weight", "wk.weight", "weights_proj.weight")}
    norm = [indexer.w.master(f"k_norm.{part}").detach().double() for part in ("weight", "bias")]
    gate, ape = (indexer.w.master(f"index_kpool_compress_{part}").detach().double() for part in ("gate", "ape"))
    x, residual, q, k = (value[0].double() for value in inputs)
    total, weight, doubles = 0.0, 0, 0
    for row in rows:
        start = max(s for s in starts if s <= row)
        pools = [range(p, p + 4) for p in range(start, row - 2, 4)]
        if len(pools) < 2:
            continue
        mass = torch.zeros(len(pools), dtype=torch.float64)
        for head in range(q.shape[0]):
            shares = torch.softmax(k[head, start : row + 1] @ q[head, row] / math.sqrt(q.shape[-1]), 0)
            mass += torch.stack([shares[pool.start - start : pool.stop - start].sum() for pool in pools])
        mass /= mass.sum()
        scores = []
        for pool in pools:
            raw = x[pool.start : pool.stop] @ w["wk.weight"].T
            centred = raw - raw.mean(1, keepdim=True)
            keys = norm[0] * centred / (centred.square().mean(1, keepdim=True) + 1e-6).sqrt() + norm[1]
            key = (torch.softmax(x[pool.start : pool.stop] @ gate.T + ape, 0) * keys).sum(0)
            dots = (w["wq_b.weight"] @ residual[row]).view(CONFIG.index_n_heads, -1) @ key
            heads = w["weights_proj.weight"] @ x[row] / math.sqrt(CONFIG.index_n_heads)
            scores.append((heads * torch.relu(dots / math.sqrt(CONFIG.index_head_dim))).sum())
        student = torch.log_softmax(torch.stack(scores), 0)
        factor = 2 if len(pools) > CUT else 1
        total += factor * float((mass * (mass.log() - student)).sum())
        weight, doubles = weight + factor, doubles + (factor == 2)
    return total / weight, doubles


def test_the_loss_is_the_divergence_from_dense_attention_by_pool() -> None:
    batch = pack(random_documents((37, 5, 60), CONFIG.vocab_size))
    inputs = _inputs(batch.tokens.shape[1])
    x, residual, q, k = inputs
    indexer = _indexer(random_model(CONFIG), RowLayout.of(batch))
    torch.manual_seed(1)
    rows = (torch.rand(1, ROWS) * batch.tokens.shape[1]).long()[0].tolist()
    torch.manual_seed(1)
    loss = indexer.loss(x, residual, indexer.pool_keys(x), q, k, ROWS)
    expected, doubles = _divergence_by_loops(indexer, inputs, [0, 48, 64], rows)
    assert 5 < doubles < ROWS - 5
    assert float(loss.detach()) == pytest.approx(expected, rel=1e-4)


def test_the_loss_is_zero_where_no_document_has_two_pools() -> None:
    batch = pack(random_documents((7,), CONFIG.vocab_size))
    batch.positions, batch.documents = torch.arange(16)[None] % 4, torch.arange(16)[None] // 4
    loss = random_model(CONFIG)(batch, ForwardOptions(indexer_rows=ROWS)).indexer
    loss.backward()
    assert float(loss.detach()) == 0.0


@pytest.mark.parametrize("sparse", [False, True])
def test_only_indexers_learn_from_their_loss_and_every_one_of_their_parameters_does(sparse: bool) -> None:
    model = random_model(CONFIG)
    batch = pack(random_documents((120,), CONFIG.vocab_size))
    model(batch, ForwardOptions(sparse=sparse, indexer_rows=ROWS)).indexer.backward()
    moved = {name for name, p in model.named_parameters() if p.grad is not None and p.grad.abs().max() > 0}
    assert moved == {name for name, _ in model.named_parameters() if ".indexer." in name}


def test_selection_costs_no_gradient_and_takes_none_from_the_other_losses() -> None:
    model = random_model(CONFIG)
    losses = model(pack(random_documents((120,), CONFIG.vocab_size)), ForwardOptions(sparse=True))
    (losses.main + losses.mtp[0]).backward()
    assert all(p.grad is None for name, p in model.named_parameters() if ".indexer." in name)


def test_the_best_pools_are_those_of_a_stable_sort() -> None:
    generator = torch.Generator().manual_seed(3)
    scores = torch.randint(4, (2, 50, 30), generator=generator).float()  # many ties
    candidates = torch.arange(30) < torch.randint(1, 31, (2, 50, 1), generator=generator)
    for count in (1, 8, 30, 64):
        order = scores.masked_fill(~candidates, -1.0).sort(dim=-1, descending=True, stable=True).indices[..., :count]
        expected = torch.zeros_like(candidates).scatter(-1, order, True) & candidates
        assert torch.equal(best_pools(scores, candidates, count), expected)
