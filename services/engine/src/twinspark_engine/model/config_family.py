"""What config.json must say to be of this family: fields with one supported value, and the kinds of the layers."""

from dataclasses import dataclass

from twinspark_engine.model.config_fields import ConfigFields
from twinspark_engine.model.layer_kinds import AttentionKind, MlpKind

DSA_SPELLINGS = frozenset({"deepseek_sparse_attention", "indexed_attention", "full_attention"})


def refuse_other_families(text: ConfigFields) -> None:
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
class LinearAttention:
    """Sizes and the gate's bound of the KDA layers."""

    num_heads: int
    head_dim: int
    lower_bound: float


def linear_attention(text: ConfigFields) -> LinearAttention:
    """KDA sizes: published in linear_attn_config, by save_pretrained in linear_* fields."""
    flat = ("linear_num_heads", "linear_head_dim", "linear_conv_kernel_dim", "linear_lower_bound")
    if text.values.get("linear_attn_config") is None:
        fields, names = text, flat
    else:
        fields = text.section("linear_attn_config")
        names = ("num_heads", "head_dim", "short_conv_kernel_size", "gate_lower_bound")
        for name, flat_name in zip(names, flat, strict=True):
            text.only(flat_name, fields.require(name))
        fields.only("safe_gate", True)
    heads, head_dim, kernel, bound = names
    fields.only(kernel, 4, required=True)
    if fields.require(bound) is None or fields.number(bound) >= 0:
        fields.refuse(bound, fields.require(bound), "the gate needs a lower bound below 0")
    return LinearAttention(fields.integer(heads), fields.integer(head_dim), fields.number(bound))


def attention_kinds(text: ConfigFields) -> tuple[AttentionKind, ...]:
    """The attention of each layer, by layer_types in any of its spellings."""
    names = text.texts("layer_types")
    if len(names) != text.integer("num_hidden_layers"):
        text.refuse("layer_types", names, "one entry a layer is needed")
    for name in names:
        if name != "linear_attention" and name not in DSA_SPELLINGS:
            text.refuse("layer_types", name, "an unknown type of layer")
    kinds = tuple(AttentionKind.KDA if name == "linear_attention" else AttentionKind.DSA for name in names)
    if text.values.get("linear_attn_config") is not None:
        linear = text.section("linear_attn_config")
        _check_layer_list(linear, "kda_layers", kinds, AttentionKind.KDA)
        _check_layer_list(linear, "full_attn_layers", kinds, AttentionKind.DSA)
    return kinds


def _check_layer_list(linear: ConfigFields, name: str, kinds: tuple[AttentionKind, ...], kind: AttentionKind) -> None:
    """An explicit list must agree with layer_types; numbers past the last layer (the MTP layer's) do not count."""
    layers = [layer for layer, other in enumerate(kinds) if other is kind]
    listed = linear.values.get(name, layers)
    beyond = list(range(len(kinds), len(kinds) + 2))
    if not isinstance(listed, list) or [layer for layer in listed if layer not in beyond] != layers:
        linear.refuse(name, listed, f"layer_types says {layers}")


def mlp_kinds(text: ConfigFields) -> tuple[MlpKind, ...]:
    """The MLP of each layer, by mlp_layer_types or the number of dense layers at the start."""
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
