"""Names and whole shapes of the published parameters, by part of the model. Letters as in parameters.py, unsplit."""

from collections.abc import Mapping

from twinspark_engine.model.config import AttentionKind, MlpKind, ModelConfig

EMBED = "model.language_model.embed_tokens.weight"
NORM = "model.language_model.norm.weight"
HEAD = "lm_head.weight"
VISION_PREFIX = "model.visual."
EXPERT_PROJECTIONS = ("gate_proj", "up_proj", "down_proj")

Shapes = Mapping[str, tuple[int, ...]]


def layer_prefix(layer: int) -> str:
    """Prefix of a layer's names; the MTP layer is the one after the last."""
    return f"model.language_model.layers.{layer}."


def expert_prefix(layer: int, expert: int, projection: str) -> str:
    """Prefix of one projection of one routed expert, without its last dot."""
    return f"{layer_prefix(layer)}mlp.experts.{expert}.{projection}"


def global_shapes(config: ModelConfig) -> Shapes:
    """What belongs to no layer."""
    table = (config.vocab_size, config.hidden_size)
    return {EMBED: table, NORM: (config.hidden_size,), HEAD: table}


def layer_shapes(config: ModelConfig, layer: int) -> Shapes:
    """One layer, routed experts apart."""
    hidden, streams = config.hidden_size, 4 * config.hidden_size
    shapes = dict(_block_shapes(config, config.attention_kinds[layer], config.mlp_kinds[layer]))
    for site in ("attn", "ffn"):
        shapes |= {f"hc_{site}_fn": (24, streams), f"hc_{site}_base": (24,), f"hc_{site}_scale": (3,)}
    shapes |= {"input_layernorm.weight": (hidden,), "post_attention_layernorm.weight": (hidden,)}
    return {layer_prefix(layer) + name: shape for name, shape in shapes.items()}


def mtp_shapes(config: ModelConfig) -> Shapes:
    """The MTP layer, routed experts apart."""
    hidden = config.hidden_size
    norms = ("enorm", "hnorm", "shared_head.norm", "input_layernorm", "post_attention_layernorm")
    shapes = dict(_block_shapes(config, AttentionKind.DSA, MlpKind.MOE))
    shapes |= {f"{norm}.weight": (hidden,) for norm in norms}
    shapes["eh_proj.weight"] = (hidden, 2 * hidden)
    return {layer_prefix(config.num_hidden_layers) + name: shape for name, shape in shapes.items()}


def moe_layers(config: ModelConfig, has_mtp: bool) -> list[int]:
    """Layers with routed experts, the MTP layer last."""
    layers = [layer for layer, kind in enumerate(config.mlp_kinds) if kind is MlpKind.MOE]
    return [*layers, config.num_hidden_layers] if has_mtp else layers


def expert_shape(config: ModelConfig, projection: str) -> tuple[int, int]:
    """[out, in] of one projection of a routed expert."""
    wide, hidden = config.moe_intermediate_size, config.hidden_size
    return (hidden, wide) if projection == "down_proj" else (wide, hidden)


def _block_shapes(config: ModelConfig, attention: AttentionKind, mlp: MlpKind) -> Shapes:
    attention_shapes = _kda_shapes(config) if attention is AttentionKind.KDA else _dsa_shapes(config)
    shapes = {f"self_attn.{name}": shape for name, shape in attention_shapes.items()}
    if mlp is MlpKind.DENSE:
        return shapes | _swiglu_shapes("mlp.", config.hidden_size, config.intermediate_size)
    shapes |= _swiglu_shapes("mlp.shared_experts.", config.hidden_size, config.shared_intermediate_size)
    shapes["mlp.gate.weight"] = (config.n_routed_experts, config.hidden_size)
    shapes["mlp.gate.e_score_correction_bias"] = (config.n_routed_experts,)
    return shapes


def _swiglu_shapes(prefix: str, hidden: int, width: int) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {f"{prefix}{part}_proj.weight": (width, hidden) for part in ("gate", "up")}
    return shapes | {f"{prefix}down_proj.weight": (hidden, width)}


def _kda_shapes(config: ModelConfig) -> Shapes:
    hidden, heads, head_dim = config.hidden_size, config.linear_num_heads, config.linear_head_dim
    channels = heads * head_dim
    shapes: dict[str, tuple[int, ...]] = {f"{part}_proj.weight": (channels, hidden) for part in "qkv"}
    shapes |= {f"{part}_conv1d.weight": (channels, 1, 4) for part in "qkv"}
    shapes |= {f"{part}_a_proj.weight": (head_dim, hidden) for part in "fg"}
    shapes |= {f"{part}_b_proj.weight": (channels, head_dim) for part in "fg"}
    return shapes | {
        "b_proj.weight": (heads, hidden),
        "A_log": (heads,),
        "dt_bias": (channels,),
        "o_norm.weight": (head_dim,),
        "o_proj.weight": (hidden, channels),
    }


def _dsa_shapes(config: ModelConfig) -> Shapes:
    hidden, heads, latent = config.hidden_size, config.num_attention_heads, config.kv_lora_rank
    key, value, index_dim = config.qk_nope_head_dim, config.v_head_dim, config.index_head_dim
    return {
        "q_a_proj.weight": (config.q_lora_rank, hidden),
        "q_a_layernorm.weight": (config.q_lora_rank,),
        "q_b_proj.weight": (heads * key, config.q_lora_rank),
        "kv_a_proj_with_mqa.weight": (latent, hidden),
        "kv_a_layernorm.weight": (latent,),
        "kv_b_proj.weight": (heads * (key + value), latent),
        "o_proj.weight": (hidden, heads * value),
        "indexer.wq_b.weight": (config.index_n_heads * index_dim, config.q_lora_rank),
        "indexer.wk.weight": (index_dim, hidden),
        "indexer.k_norm.weight": (index_dim,),
        "indexer.k_norm.bias": (index_dim,),
        "indexer.weights_proj.weight": (config.index_n_heads, hidden),
        "indexer.index_kpool_compress_ape": (config.index_kpool, index_dim),
        "indexer.index_kpool_compress_gate": (index_dim, hidden),
    }
