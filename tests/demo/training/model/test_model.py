"""What a training loop does with the model: balance, noise, freezing, export; and that it learns."""

from functools import partial

import pytest
import torch

from support.checkpoint_folders import all_shapes
from support.demo_models import pack, random_documents, random_model, small_config, stack
from twinspark_demo.training.model import DemoModel, ForwardOptions, TrainingBatch
from twinspark_engine.model.config import ModelConfig
from twinspark_tools.tiny_checkpoint.shapes import SHAPES, config_json

CONFIG = small_config()


def _batch(seed: int = 0) -> TrainingBatch:
    return pack(random_documents((100,), CONFIG.vocab_size, seed))


def test_the_demo_shape_has_every_published_tensor() -> None:
    config = ModelConfig.from_json(config_json(SHAPES["demo"]))
    model = DemoModel(config)
    found = {name: tuple(tensor.shape) for name, tensor in model.plain_tensors().items()}
    found |= {f"{prefix}.weight": tuple(matrix.shape) for prefix, matrix in model.expert_matrices()}
    assert found == all_shapes(config)


def test_balance_moves_rows_from_loaded_experts_to_idle_ones() -> None:
    model = random_model(CONFIG)
    batch, options = _batch(), ForwardOptions()
    with torch.no_grad():
        before = model(batch, options).router_load
        for _ in range(30):
            load = model(batch, options).router_load
            for _ in range(10):
                model.balance(load)
        after = model(batch, options).router_load
    assert before.shape == (3, CONFIG.n_routed_experts)
    assert torch.equal(before.sum(1), torch.full((3,), 2.0 * batch.tokens.numel()))
    assert (after.std(1) < 0.5 * before.std(1)).all()


def test_the_routers_bias_selects_and_does_not_weigh() -> None:
    model = random_model(CONFIG)
    batch, options = _batch(), ForwardOptions()
    with torch.no_grad():
        before = model.predictions(batch, options).logits
        for buffer in model.buffers():
            buffer.add_(1.0)  # the same experts as before
        assert torch.equal(model.predictions(batch, options).logits, before)
        for buffer in model.buffers():
            buffer[0] = 100.0
        load = model(batch, options).router_load
        assert torch.equal(load[:, 0], torch.full((3,), float(batch.tokens.numel())))


def test_noise_changes_what_comes_out_and_no_parameter() -> None:
    model = random_model(CONFIG)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with torch.no_grad():
        plain, *noisy = (
            model.predictions(_batch(), ForwardOptions(expert_noise=noise)).logits for noise in (0.0, 0.08, 0.08)
        )
    assert (plain - noisy[0]).abs().max() > 1e-3
    assert (noisy[1] - noisy[0]).abs().max() > 1e-3
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_frozen_experts_are_the_given_matrices_and_have_no_gradient() -> None:
    model = random_model(CONFIG)
    halves = {prefix: matrix / 2 for prefix, matrix in model.expert_matrices()}
    model.freeze_experts(halves)
    assert all(torch.equal(matrix, halves[prefix]) for prefix, matrix in model.expert_matrices())
    losses = model(_batch(), ForwardOptions())
    (losses.main + losses.mtp[0]).backward()
    frozen = {name for name, parameter in model.named_parameters() if parameter.grad is None}
    assert {name for name in frozen if ".indexer." not in name} == {
        f"model.language_model.layers.{layer}.mlp.experts.{part}" for layer in (1, 3, 4) for part in ("gate_up", "down")
    }


def test_every_parameter_but_the_indexers_learns_from_the_losses() -> None:
    model = random_model(CONFIG)
    losses = model(_batch(), ForwardOptions(mtp_depth=3, expert_noise=0.05))
    (losses.main + sum(losses.mtp)).backward()
    for name, parameter in model.named_parameters():
        if ".indexer." not in name:
            assert parameter.grad is not None, name
            assert parameter.grad.abs().max() > 0, name


def test_the_model_computes_in_bfloat16_what_it_computes_in_float32() -> None:
    torch.manual_seed(0)
    exact = random_model(CONFIG)
    rounded = random_model(CONFIG)
    rounded.compute_dtype = torch.bfloat16
    batch, options = _batch(), ForwardOptions(mtp_depth=2)
    ours, theirs = exact(batch, options), rounded(batch, options)
    # bf16 rounds by 4e-3 in each of five layers.
    assert float(theirs.main.detach()) == pytest.approx(float(ours.main.detach()), rel=0.03)
    assert float(theirs.mtp[1].detach()) == pytest.approx(float(ours.mtp[1].detach()), rel=0.03)
    (theirs.main + theirs.mtp[1]).backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in rounded.parameters())


@pytest.mark.slow
def test_eight_documents_are_learned_by_heart() -> None:
    config = small_config(
        hidden_size=64,
        layer_types=["linear_attention"] * 3 + ["deepseek_sparse_attention"],
        mlp_layer_types=["dense"] * 3 + ["sparse"],
        linear_attn_config={
            "num_heads": 4, "head_dim": 16, "short_conv_kernel_size": 4, "gate_lower_bound": -5.0,
            "kda_layers": [0, 1, 2], "full_attn_layers": [3],
        },
    )  # fmt: skip
    model = DemoModel(config)
    documents = random_documents([31] * 8, config.vocab_size, seed=5)
    batch = stack([pack(documents[i : i + 2], 64) for i in range(0, 8, 2)])
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, betas=(0.9, 0.95), weight_decay=0.0)
    options = ForwardOptions()
    for step in range(60):
        for group in optimizer.param_groups:
            group["lr"] = 4e-3 * min(1.0, (step + 1) / 10)
        losses = model(batch, options)
        optimizer.zero_grad()
        (losses.main + 0.5 * losses.mtp[0]).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        model.balance(losses.router_load)
    targets = batch.weights > 0
    second = targets & (batch.positions > 1)
    assert float(losses.main.detach()) < 0.05
    assert float((losses.mtp_correct & second).sum() / second.sum()) > 0.9


@pytest.mark.slow
def test_indexers_learn_by_heart_where_eight_documents_attend() -> None:
    model = random_model(CONFIG)
    start = DemoModel(CONFIG).state_dict()
    learned = {name: parameter for name, parameter in model.named_parameters() if ".indexer." in name}
    with torch.no_grad():
        for name, parameter in learned.items():
            parameter.copy_(start[name])
    documents = random_documents([32] * 8, CONFIG.vocab_size, seed=5)
    batch = stack([pack(documents[i : i + 2]) for i in range(0, 8, 2)])
    optimizer = torch.optim.AdamW(learned.values(), lr=1e-2, betas=(0.9, 0.95), weight_decay=0.0)
    divergences = []
    for _ in range(80):
        loss = model(batch, ForwardOptions(indexer_rows=64)).indexer
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        divergences.append(float(loss.detach()))
    assert sum(divergences[-5:]) < 0.5 * sum(divergences[:5])


@pytest.mark.slow
def test_every_chain_compiles_as_one_graph_and_keeps_losses_and_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    compile_with_inductor = torch.compile
    # Traces forward and backward as on a GPU, and then runs PyTorch's own kernels: no compiler needed.
    monkeypatch.setattr(torch, "compile", partial(compile_with_inductor, backend="aot_eager", fullgraph=True))
    options = ForwardOptions(sparse=True, indexer_rows=16, mtp_depth=2)
    results = []
    for compiled in (False, True):
        model = DemoModel(CONFIG, compiled=compiled)
        model.load_state_dict(random_model(CONFIG).state_dict())
        torch.manual_seed(0)
        losses = model(_batch(), options)
        total = losses.main + sum(losses.mtp) + losses.indexer
        total.backward()
        results.append([total.detach(), *(p.grad for p in model.parameters())])
    assert all(torch.allclose(plain, fused, rtol=1e-4, atol=1e-5) for plain, fused in zip(*results, strict=True))
