"""ModelConfig: what config.json says about the text model, in either spelling (published or save_pretrained).

A value outside the family is refused by name and never computed as if it were the default.
"""

import enum
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from twinspark_engine.model.checkpoint_error import CheckpointError, CheckpointReason
from twinspark_engine.model.config_fields import ConfigFields, read_json

CELL = 64
"""Absolute positions of one KDA cell; index_kpool must divide it."""


class AttentionKind(enum.Enum):
    """What mixes positions in a layer."""

    KDA = "kda"
    DSA = "dsa"


class MlpKind(enum.Enum):
    """What follows the attention of a layer."""

    DENSE = "dense"
    MOE = "moe"


DSA_SPELLINGS = frozenset({"deepseek_sparse_attention", "indexed_attention", "full_attention"})


@dataclass(frozen=True)
class ModelConfig:
    """Sizes and constants of one checkpoint, all of the whole model (not of one rank)."""

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    max_position_embeddings: int
    attention_kinds: tuple[AttentionKind, ...]
    mlp_kinds: tuple[MlpKind, ...]
    intermediate_size: int
    moe_intermediate_size: int
    n_routed_experts: int
    n_shared_experts: int
    num_experts_per_tok: int
    routed_scaling_factor: float
    swiglu_limit: float
    rms_norm_eps: float
    linear_num_heads: int
    linear_head_dim: int
    linear_lower_bound: float
    num_attention_heads: int
    q_lora_rank: int
    kv_lora_rank: int
    qk_nope_head_dim: int
    v_head_dim: int
    index_n_heads: int
    index_head_dim: int
    index_topk: int
    index_kpool: int
    hc_eps: float
    hc_sinkhorn_iters: int

    @property
    def num_selected_pools(self) -> int:
        """Pools that a sparse row selects."""
        return self.index_topk // self.index_kpool

    @property
    def shared_intermediate_size(self) -> int:
        """Width of the shared expert."""
        return self.moe_intermediate_size * self.n_shared_experts

    @classmethod
    def from_folder(cls, folder: Path) -> Self:
        """Reads folder/config.json; CheckpointError names the field that is refused."""
        return cls.from_json(read_json(folder / "config.json"))

    @classmethod
    def from_json(cls, content: dict[str, object]) -> Self:
        """The same from the parsed file."""
        top = ConfigFields(content, "")
        top.only("model_type", "glm5_next", required=True)
        top.only("tie_word_embeddings", False)
        text = top.section("text_config")
        _refuse_other_families(text)
        linear = _linear_attention(text)
        config = cls(
            vocab_size=text.integer("vocab_size"),
            hidden_size=text.integer("hidden_size"),
            num_hidden_layers=text.integer("num_hidden_layers"),
            max_position_embeddings=text.integer("max_position_embeddings"),
            attention_kinds=_attention_kinds(text),
            mlp_kinds=_mlp_kinds(text),
            intermediate_size=text.integer("intermediate_size"),
            moe_intermediate_size=text.integer("moe_intermediate_size"),
            n_routed_experts=text.integer("n_routed_experts"),
            n_shared_experts=text.integer("n_shared_experts"),
            num_experts_per_tok=text.integer("num_experts_per_tok"),
            routed_scaling_factor=text.number("routed_scaling_factor"),
            swiglu_limit=text.positive("swiglu_limit"),
            rms_norm_eps=text.positive("rms_norm_eps"),
            linear_num_heads=linear.num_heads,
            linear_head_dim=linear.head_dim,
            linear_lower_bound=linear.lower_bound,
            num_attention_heads=text.integer("num_attention_heads"),
            q_lora_rank=text.integer("q_lora_rank"),
            kv_lora_rank=text.integer("kv_lora_rank"),
            qk_nope_head_dim=text.integer("qk_nope_head_dim"),
            v_head_dim=text.integer("v_head_dim"),
            index_n_heads=text.integer("index_n_heads"),
            index_head_dim=text.integer("index_head_dim"),
            index_topk=text.integer("index_topk"),
            index_kpool=text.integer("index_kpool"),
            hc_eps=text.positive("hc_eps"),
            hc_sinkhorn_iters=text.integer("hc_sinkhorn_iters"),
        )
        config._check_relations(text)
        return config

    def _check_relations(self, text: ConfigFields) -> None:
        if CELL % self.index_kpool:
            text.refuse("index_kpool", self.index_kpool, f"the pool must divide {CELL}")
        if self.index_topk % self.index_kpool:
            text.refuse("index_topk", self.index_topk, f"it must be a multiple of index_kpool ({self.index_kpool})")
        if self.num_experts_per_tok > self.n_routed_experts:
            text.refuse("num_experts_per_tok", self.num_experts_per_tok, "there are fewer routed experts")
        text.only("num_key_value_heads", self.num_attention_heads)
        text.only("qk_head_dim", self.qk_nope_head_dim)

    def check_world_size(self, world_size: int) -> None:
        """SIZE_NOT_DIVISIBLE if a size that is split over ranks cannot be."""
        split = ("vocab_size", "linear_num_heads", "num_attention_heads", "intermediate_size", "moe_intermediate_size")
        for name in split:
            if getattr(self, name) % world_size:
                message = f"text_config.{name} is {getattr(self, name)}: it does not divide by {world_size} ranks"
                raise CheckpointError(CheckpointReason.SIZE_NOT_DIVISIBLE, message)


def _refuse_other_families(text: ConfigFields) -> None:
    """Fields that have one supported value; those which both spellings always write are required."""
    text.only("model_type", "glm5_next_text")
    text.only("tie_word_embeddings", False)
    text.only("hc_mult", 4, required=True)
    text.only("mhc", True)
    text.only("attention_bias", False, required=True)
    text.only("n_group", 1, required=True)
    text.only("topk_group", 1)
    text.only("norm_topk_prob", True, required=True)
    text.only("scoring_func", "sigmoid")
    text.only("topk_method", "noaux_tc")
    text.only("moe_router_dtype", "float32")
    text.only("hidden_act", "silu", required=True)
    text.only("qk_rope_head_dim", 0, required=True)
    text.only("mla_use_nope", True)
    text.only("index_kpool_compress", True)
    text.only("index_kpool_always_select_tail", True, required=True)
    _refuse_shared_indexers(text)
    nextn = text.values.get("num_nextn_predict_layers")
    if nextn not in (None, 0, 1) or isinstance(nextn, bool):
        text.refuse("num_nextn_predict_layers", nextn, "at most one MTP layer is supported")


def _refuse_shared_indexers(text: ConfigFields) -> None:
    """Every layer has its own indexer, whichever of the three spellings says so."""
    if text.values.get("indexer_types") is not None:
        if set(text.texts("indexer_types")) - {"full"}:
            text.refuse("indexer_types", text.values["indexer_types"], 'only "full" is supported')
        return
    pattern = text.values.get("index_topk_pattern")
    if pattern is not None and set(pattern if isinstance(pattern, str | list) else [pattern]) - {"F", "full"}:
        text.refuse("index_topk_pattern", pattern, "only full indexers are supported")
    text.only("index_topk_freq", 1)


@dataclass(frozen=True)
class _LinearAttention:
    num_heads: int
    head_dim: int
    lower_bound: float


def _linear_attention(text: ConfigFields) -> _LinearAttention:
    """KDA sizes: published in linear_attn_config, by save_pretrained in linear_* fields."""
    if text.values.get("linear_attn_config") is None:
        fields, names = text, ("linear_num_heads", "linear_head_dim", "linear_conv_kernel_dim", "linear_lower_bound")
    else:
        fields = text.section("linear_attn_config")
        names = ("num_heads", "head_dim", "short_conv_kernel_size", "gate_lower_bound")
        for name, flat in zip(
            names, ("linear_num_heads", "linear_head_dim", "linear_conv_kernel_dim", "linear_lower_bound"), strict=True
        ):
            text.only(flat, fields.require(name))
        fields.only("safe_gate", True)
    heads, head_dim, kernel, bound = names
    fields.only(kernel, 4, required=True)
    lower_bound = fields.require(bound)
    if lower_bound is None:
        fields.refuse(bound, None, "the gate needs a lower bound below 0")
    if fields.number(bound) >= 0:
        fields.refuse(bound, lower_bound, "the gate needs a lower bound below 0")
    return _LinearAttention(fields.integer(heads), fields.integer(head_dim), fields.number(bound))


def _attention_kinds(text: ConfigFields) -> tuple[AttentionKind, ...]:
    names = text.texts("layer_types")
    if len(names) != text.integer("num_hidden_layers"):
        text.refuse("layer_types", names, "one entry a layer is needed")
    for name in names:
        if name != "linear_attention" and name not in DSA_SPELLINGS:
            text.refuse("layer_types", name, "an unknown type of layer")
    kinds = tuple(AttentionKind.KDA if name == "linear_attention" else AttentionKind.DSA for name in names)
    if text.values.get("linear_attn_config") is not None:
        linear = text.section("linear_attn_config")
        linear.only("kda_layers", [i for i, kind in enumerate(kinds) if kind is AttentionKind.KDA])
        linear.only("full_attn_layers", [i for i, kind in enumerate(kinds) if kind is AttentionKind.DSA])
    return kinds


def _mlp_kinds(text: ConfigFields) -> tuple[MlpKind, ...]:
    layers = text.integer("num_hidden_layers")
    if text.values.get("mlp_layer_types") is None:
        dense = min(text.integer("first_k_dense_replace", minimum=0), layers)
        return (MlpKind.DENSE,) * dense + (MlpKind.MOE,) * (layers - dense)
    names = text.texts("mlp_layer_types")
    if len(names) != layers or set(names) - {"dense", "sparse"}:
        text.refuse("mlp_layer_types", names, 'one of "dense" and "sparse" for each layer is needed')
    if "first_k_dense_replace" in text.values:
        text.only("first_k_dense_replace", names.index("sparse") if "sparse" in names else layers)
    return tuple(MlpKind.DENSE if name == "dense" else MlpKind.MOE for name in names)
