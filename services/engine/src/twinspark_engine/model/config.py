"""ModelConfig: what config.json says about the text model, in either spelling (published or save_pretrained).

A value outside the family is refused by name and never computed as if it were the default.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from twinspark_engine.model.checkpoint_error import CheckpointError, CheckpointReason
from twinspark_engine.model.config_family import attention_kinds, linear_attention, mlp_kinds, refuse_other_families
from twinspark_engine.model.config_fields import ConfigFields, read_json
from twinspark_engine.model.layer_kinds import AttentionKind, MlpKind

__all__ = ["CELL", "AttentionKind", "MlpKind", "ModelConfig"]

CELL = 64
"""Absolute positions of one KDA cell; index_kpool must divide it."""


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
        refuse_other_families(text)
        linear = linear_attention(text)
        config = cls(
            vocab_size=text.integer("vocab_size"),
            hidden_size=text.integer("hidden_size"),
            num_hidden_layers=text.integer("num_hidden_layers"),
            max_position_embeddings=text.integer("max_position_embeddings"),
            attention_kinds=attention_kinds(text),
            mlp_kinds=mlp_kinds(text),
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
