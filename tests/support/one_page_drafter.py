"""The drafter on one page, in float64: one block behind one prefix, row by row, and the serving walk."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Page:
    """Tensors by published name, the target's embedding and head, and the numbers of the config."""

    tensors: Mapping[str, Array]
    embedding: Array
    head: Array
    heads: int
    kv_heads: int
    head_dim: int
    window: int
    mask_id: int
    top_k: int
    layers: int = 5
    block: int = 8
    theta: float = 1e4
    eps: float = 1e-5

    def rows(self, taps: Array, pending: int) -> Array:
        """taps [s, taps D] of the committed prefix, the pending token at position s -> rows 1 to 7 [7, D]."""
        start = len(taps)
        context = self.norm(taps @ self.tensors["fc.weight"].T, "hidden_norm.weight")
        x = np.stack([self.embedding[pending if row == 0 else self.mask_id] for row in range(self.block)])
        for layer in range(self.layers):
            x = self.layer(x, context, start, f"layers.{layer}.")
        return self.norm(x[1:], "norm.weight")

    def layer(self, x: Array, context: Array, start: int, prefix: str) -> Array:
        n = self.norm(x, prefix + "input_layernorm.weight")
        h = self.conv(n, n, prefix + "attention_conv.", side=0)
        x = x + self.conv(
            self.attention(h, context, start, prefix + "self_attn."), n, prefix + "attention_conv.", side=1
        )
        m = self.norm(x, prefix + "post_attention_layernorm.weight")
        u = self.conv(m, m, prefix + "mlp_conv.", side=0)
        gate, up, down = (self.tensors[f"{prefix}mlp.{part}_proj.weight"] for part in ("gate", "up", "down"))
        gated = u @ gate.T
        z = (gated / (1 + np.exp(-gated)) * (u @ up.T)) @ down.T
        return x + self.conv(z, m, prefix + "mlp_conv.", side=1)

    def conv(self, h: Array, normed: Array, prefix: str, side: int) -> Array:
        """Each channel of each row, mixed with the row before; nothing before the block's first row."""
        base, projection = self.tensors[prefix + "base_kernel"], self.tensors[prefix + "kernel_projection.weight"]
        groups = len(projection) // 4
        out = np.zeros_like(h)
        for row in range(len(h)):
            dynamic = (projection @ normed[row]).reshape(2, 2, groups)
            for channel in range(h.shape[1]):
                group = channel // (h.shape[1] // groups)
                own = (base[side, 0, channel] + dynamic[side, 0, group]) * h[row, channel]
                before = h[row - 1, channel] if row else 0.0
                out[row, channel] = own + (base[side, 1, channel] + dynamic[side, 1, group]) * before
        return out

    def attention(self, h: Array, context: Array, start: int, prefix: str) -> Array:
        keys = [(p, *self.key_value(context[p], p, prefix)) for p in range(start)]
        keys += [(start + r, *self.key_value(h[r], start + r, prefix)) for r in range(len(h))]
        out = np.zeros((len(h), self.heads * self.head_dim))
        for row in range(len(h)):
            place = start + row
            q = (self.tensors[prefix + "q_proj.weight"] @ h[row]).reshape(self.heads, self.head_dim)
            seen = [key for key in keys if key[0] >= start or place - key[0] < self.window]
            for head in range(self.heads):
                query = self.turn(self.norm(q[head], prefix + "q_norm.weight"), place)
                of = head // (self.heads // self.kv_heads)
                scores = np.array([query @ k[of] for _, k, _ in seen]) / math.sqrt(self.head_dim)
                shares = np.exp(scores - scores.max())
                mixed = sum(share * v[of] for share, (_, _, v) in zip(shares / shares.sum(), seen, strict=True))
                out[row, head * self.head_dim : (head + 1) * self.head_dim] = mixed
        return out @ self.tensors[prefix + "o_proj.weight"].T

    def key_value(self, row: Array, place: int, prefix: str) -> tuple[Array, Array]:
        k, v = ((self.tensors[f"{prefix}{part}_proj.weight"] @ row).reshape(self.kv_heads, -1) for part in ("k", "v"))
        return np.stack([self.turn(self.norm(one, prefix + "k_norm.weight"), place) for one in k]), v

    def turn(self, x: Array, place: int) -> Array:
        """Channel i and channel i + half are one point in a plane, turned by place * theta^(-i / half)."""
        half = len(x) // 2
        out = np.empty_like(x)
        for i in range(half):
            angle = place * self.theta ** (-i / half)
            out[i] = x[i] * math.cos(angle) - x[i + half] * math.sin(angle)
            out[i + half] = x[i + half] * math.cos(angle) + x[i] * math.sin(angle)
        return out

    def norm(self, x: Array, name: str) -> Array:
        scaled: Array = x / np.sqrt((x * x).mean(-1, keepdims=True) + self.eps) * self.tensors[name]
        return scaled

    def edge(self, row: Array, before: int, candidate: int) -> float:
        selector = "candidate_selector."
        key = self.tensors[selector + "predecessor_codebook"][before]
        key = key * (self.tensors[selector + "hidden_projection.weight"] @ row)
        return float(key @ self.tensors[selector + "successor_codebook"][candidate])

    def walk(self, rows: Array, pending: int) -> list[int]:
        """The drafts, greedily, with edges weighed 0.6."""
        drafts: list[int] = []
        for row in rows:
            logits = self.head @ row
            best = sorted(range(len(logits)), key=lambda token: (-logits[token], token))[: self.top_k]
            before = drafts[-1] if drafts else pending
            drafts.append(max(best, key=lambda token: logits[token] + 0.6 * self.edge(row, before, token)))
        return drafts

    def cross_entropies(self, rows: Array, labels: Sequence[int], befores: Sequence[int]) -> list[tuple[float, float]]:
        """Of each row: over the whole vocabulary, and over its best tokens and the label with edges."""
        found = []
        for row, label, before in zip(rows, labels, befores, strict=True):
            logits = self.head @ row
            best = sorted(range(len(logits)), key=lambda token: (-logits[token], token))[: self.top_k]
            best = best if label in best else [*best[:-1], label]
            scores = {token: logits[token] + 0.6 * self.edge(row, before, token) for token in best}
            found.append((_surprise(logits, logits[label]), _surprise(np.array(list(scores.values())), scores[label])))
        return found


def _surprise(scores: Array, of: float) -> float:
    return float(scores.max() + np.log(np.exp(scores - scores.max()).sum()) - of)
