"""The MTP layer against one page of float64: row by row with a cache, as a server drafts."""

import pytest
import torch
from torch import Tensor

from support.demo_models import pack, random_documents, random_model, small_config
from twinspark_demo.training.model import DemoModel, ForwardOptions

LENGTH = 30
Cache = list[tuple[Tensor, Tensor]]  # keys [H, N] and values [H, V] of each position so far


class OnePage:
    """The layer for one row at a time; formulas: facts of GLM-5.3-Flash, MTP, DSA (dense), MoE."""

    def __init__(self, model: DemoModel) -> None:
        self.config = model.config
        prefix = f"model.language_model.layers.{model.config.num_hidden_layers}."
        named = {name: tensor.double() for name, tensor in model.plain_tensors().items()}
        named |= {f"{name}.weight": tensor.double() for name, tensor in model.expert_matrices()}
        self.embed, self.head = named["model.language_model.embed_tokens.weight"], named["lm_head.weight"]
        self.w = {name.removeprefix(prefix): tensor for name, tensor in named.items()}

    def norm(self, x: Tensor, name: str) -> Tensor:
        return self.w[f"{name}.weight"] * x / (x.square().mean() + self.config.rms_norm_eps).sqrt()

    def row(self, hidden: Tensor, token: int, position: int, cache: Cache) -> Tensor:
        """y after shared_head.norm; the row's key and value join the cache."""
        embedded = self.embed[token] if position else torch.zeros_like(self.embed[token])
        x = self.w["eh_proj.weight"] @ torch.cat([self.norm(embedded, "enorm"), self.norm(hidden, "hnorm")])
        x = x + self.attention(self.norm(x, "input_layernorm"), cache)
        x = x + self.mixture(self.norm(x, "post_attention_layernorm"))
        return self.norm(x, "shared_head.norm")

    def attention(self, x: Tensor, cache: Cache) -> Tensor:
        heads, size = self.config.num_attention_heads, self.config.qk_nope_head_dim
        residual = self.norm(self.w["self_attn.q_a_proj.weight"] @ x, "self_attn.q_a_layernorm")
        q = (self.w["self_attn.q_b_proj.weight"] @ residual).view(heads, size)
        latent = self.norm(self.w["self_attn.kv_a_proj_with_mqa.weight"] @ x, "self_attn.kv_a_layernorm")
        k, v = (self.w["self_attn.kv_b_proj.weight"] @ latent).view(heads, -1).tensor_split([size], dim=1)
        cache.append((k, v))
        keys, values = (torch.stack(part) for part in zip(*cache, strict=True))
        shares = torch.softmax(torch.einsum("hn,thn->ht", q, keys) / size**0.5, dim=1)
        return self.w["self_attn.o_proj.weight"] @ torch.einsum("ht,thv->hv", shares, values).flatten()

    def mixture(self, x: Tensor) -> Tensor:
        scores = torch.sigmoid(self.w["mlp.gate.weight"] @ x)
        chosen = (scores + self.w["mlp.gate.e_score_correction_bias"]).topk(self.config.num_experts_per_tok).indices
        factor = self.config.routed_scaling_factor / scores[chosen].sum()
        routed = sum(factor * scores[e] * self.mlp(x, f"experts.{e}") for e in chosen.tolist())
        return routed + self.mlp(x, "shared_experts")

    def mlp(self, x: Tensor, name: str) -> Tensor:
        limit = self.config.swiglu_limit
        gate, up = (self.w[f"mlp.{name}.{part}_proj.weight"] @ x for part in ("gate", "up"))
        gate, up = gate.clamp(max=limit), up.clamp(-limit, limit)
        return self.w[f"mlp.{name}.down_proj.weight"] @ (gate * torch.sigmoid(gate) * up)


@pytest.mark.parametrize("topk", [4096, 16], ids=["dense", "up-to-the-limit"])
def test_each_draft_is_what_a_server_drafts_with_its_cache(topk: int) -> None:
    config = small_config(index_topk=topk)
    model = random_model(config)
    (ids,) = random_documents((LENGTH,), config.vocab_size)
    # Behind another document, whose rows nothing may see.
    other = random_documents((16,), config.vocab_size, seed=1)
    options = ForwardOptions(mtp_depth=3, sparse=True)
    with torch.no_grad():
        result = model.predictions(pack([*other, ids]), options)
    page, checked = OnePage(model), 0
    cache: Cache = []
    hidden = result.hidden[0, 16:].double()
    last = LENGTH - 1 if topk > LENGTH else 16
    for position in range(last):
        source = hidden[position]
        chain: Cache = []
        for depth in range(1, 4):
            row = position + depth - 1
            if row >= last:
                break
            seen: Cache = cache if depth == 1 else [*cache, *chain]
            source = page.row(source, ids[row + 1], row, seen)
            chain += [] if depth == 1 else seen[-1:]
            expected = page.head @ source
            error = (result.mtp_logits[depth - 1][0, 16 + row] - expected).abs().max()
            # fp32 through all layers against float64.
            assert error < 1e-4 * expected.abs().max(), f"depth {depth} of position {position}"
            checked += 1
    assert checked == 3 * last - 3


def test_a_deeper_draft_differs_from_the_first_one_of_the_same_row() -> None:
    model = random_model(small_config())
    with torch.no_grad():
        first, second, third = model.predictions(
            pack(random_documents((LENGTH,), 92)), ForwardOptions(mtp_depth=3)
        ).mtp_logits
    assert (first - second)[0, 2:].abs().amax(-1).min() > 1e-3
    assert (second - third)[0, 2:].abs().amax(-1).min() > 1e-3


def test_the_main_model_learns_from_drafts() -> None:
    model = random_model(small_config())
    model(pack(random_documents((LENGTH,), 92)), ForwardOptions()).mtp[0].backward()
    named = dict(model.named_parameters())
    for name in ("model.language_model.layers.0.self_attn.q_proj.weight", "model.language_model.embed_tokens.weight"):
        gradient = named[name].grad
        assert gradient is not None
        assert gradient.abs().max() > 0
