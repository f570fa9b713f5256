"""ModelConfig: both spellings are read, everything outside the family is refused by field and value."""

import json
from pathlib import Path

import pytest

from support.checkpoint_folders import micro_config
from twinspark_engine.model.checkpoint_error import CheckpointError, CheckpointReason
from twinspark_engine.model.config import AttentionKind, MlpKind, ModelConfig

KDA, DSA = AttentionKind.KDA, AttentionKind.DSA


def published_linear(**changes: object) -> dict[str, object]:
    linear = micro_config()["text_config"]["linear_attn_config"]  # type: ignore[index]
    return {"linear_attn_config": {**linear, **changes}}


def saved_config(**text: object) -> dict[str, object]:
    """The spelling of save_pretrained: flat linear_* fields, indexed_attention, no first_k_dense_replace."""
    flat = {
        "linear_attn_config": None,
        "linear_num_heads": 4,
        "linear_head_dim": 12,
        "linear_conv_kernel_dim": 4,
        "linear_lower_bound": -5.0,
        "layer_types": ["linear_attention"] * 2 + ["indexed_attention"] * 2,
    }
    return micro_config(**{**flat, **text})


def test_both_spellings_read_the_same() -> None:
    assert ModelConfig.from_json(saved_config()) == ModelConfig.from_json(micro_config())


def test_sizes_and_kinds_are_those_of_the_file() -> None:
    config = ModelConfig.from_json(micro_config())
    assert config.attention_kinds == (KDA, KDA, DSA, DSA)
    assert config.mlp_kinds == (MlpKind.DENSE, MlpKind.MOE, MlpKind.DENSE, MlpKind.MOE)
    assert (config.linear_num_heads, config.linear_head_dim, config.linear_lower_bound) == (4, 12, -5.0)
    assert (config.index_topk, config.index_kpool, config.num_selected_pools) == (16, 4, 4)
    assert config.shared_intermediate_size == 256


def test_first_dense_layers_stand_in_for_a_missing_list() -> None:
    content = micro_config(mlp_layer_types=None, first_k_dense_replace=1)
    assert ModelConfig.from_json(content).mlp_kinds == (MlpKind.DENSE,) + (MlpKind.MOE,) * 3


REFUSED_TEXT = [
    ({"index_kpool_always_select_tail": False}, "text_config.index_kpool_always_select_tail is false"),
    ({"indexer_types": ["full", "full", "full", "shared"]}, 'indexer_types is ["full", "full", "full", "shared"]'),
    ({"indexer_types": None, "index_topk_pattern": "FFFS"}, 'text_config.index_topk_pattern is "FFFS"'),
    ({"indexer_types": None, "index_topk_freq": 2}, "text_config.index_topk_freq is 2"),
    ({"attention_bias": True}, "text_config.attention_bias is true"),
    ({"n_group": 2}, "text_config.n_group is 2"),
    ({"topk_group": 2}, "text_config.topk_group is 2"),
    ({"norm_topk_prob": False}, "text_config.norm_topk_prob is false"),
    ({"hc_mult": 2}, "text_config.hc_mult is 2"),
    ({"mhc": False}, "text_config.mhc is false"),
    ({"tie_word_embeddings": True}, "text_config.tie_word_embeddings is true"),
    ({"index_kpool": 3, "index_topk": 15}, "text_config.index_kpool is 3"),
    ({"index_kpool": 128, "index_topk": 128}, "text_config.index_kpool is 128"),
    ({"index_topk": 18}, "text_config.index_topk is 18"),
    ({"index_kpool_compress": False}, "text_config.index_kpool_compress is false"),
    ({"qk_rope_head_dim": 8}, "text_config.qk_rope_head_dim is 8"),
    ({"mla_use_nope": False}, "text_config.mla_use_nope is false"),
    ({"qk_head_dim": 11}, "text_config.qk_head_dim is 11"),
    ({"num_key_value_heads": 2}, "text_config.num_key_value_heads is 2"),
    ({"hidden_act": "gelu"}, 'text_config.hidden_act is "gelu"'),
    ({"scoring_func": "softmax"}, 'text_config.scoring_func is "softmax"'),
    ({"topk_method": "greedy"}, 'text_config.topk_method is "greedy"'),
    ({"moe_router_dtype": "bfloat16"}, 'text_config.moe_router_dtype is "bfloat16"'),
    (
        {"layer_types": ["linear_attention"] * 3 + ["sliding_attention"]},
        'text_config.layer_types is "sliding_attention"',
    ),
    ({"layer_types": ["linear_attention"] * 3}, "text_config.layer_types is ["),
    ({"mlp_layer_types": ["dense", "sparse", "dense", "wide"]}, "text_config.mlp_layer_types is ["),
    ({"first_k_dense_replace": 3}, "text_config.first_k_dense_replace is 3"),
    ({"num_nextn_predict_layers": 2}, "text_config.num_nextn_predict_layers is 2"),
    ({"num_experts_per_tok": 4}, "text_config.num_experts_per_tok is 4"),
    ({"n_shared_experts": 0}, "text_config.n_shared_experts is 0"),
    ({"swiglu_limit": None}, "text_config.swiglu_limit is null"),
    ({"swiglu_limit": 0}, "text_config.swiglu_limit is 0"),
    ({"rms_norm_eps": "small"}, 'text_config.rms_norm_eps is "small"'),
    ({"hidden_size": True}, "text_config.hidden_size is true"),
    ({"hidden_size": 128.0}, "text_config.hidden_size is 128.0"),
    ({"hc_sinkhorn_iters": 0}, "text_config.hc_sinkhorn_iters is 0"),
    ({"model_type": "glm5"}, 'text_config.model_type is "glm5"'),
    (published_linear(gate_lower_bound=None), "text_config.linear_attn_config.gate_lower_bound is null"),
    (published_linear(gate_lower_bound=1.0), "text_config.linear_attn_config.gate_lower_bound is 1.0"),
    (published_linear(short_conv_kernel_size=3), "text_config.linear_attn_config.short_conv_kernel_size is 3"),
    (published_linear(safe_gate=False), "text_config.linear_attn_config.safe_gate is false"),
    (published_linear(kda_layers=[1, 2]), "text_config.linear_attn_config.kda_layers is [1, 2]"),
    (published_linear(kda_layers=[0, 1, 2]), "text_config.linear_attn_config.kda_layers is [0, 1, 2]"),
    (published_linear(full_attn_layers=[2]), "text_config.linear_attn_config.full_attn_layers is [2]"),
    ({"linear_head_dim": 16}, "text_config.linear_head_dim is 16"),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED_TEXT, ids=[message for _, message in REFUSED_TEXT])
def test_value_outside_the_family_is_refused_by_name(changes: dict[str, object], message: str) -> None:
    with pytest.raises(CheckpointError) as refusal:
        ModelConfig.from_json(micro_config(**changes))
    assert message in str(refusal.value)
    assert refusal.value.reason is CheckpointReason.CONFIG_UNSUPPORTED


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"linear_lower_bound": None}, "text_config.linear_lower_bound is null"),
        ({"linear_conv_kernel_dim": 3}, "text_config.linear_conv_kernel_dim is 3"),
        ({"attention_bias": True}, "text_config.attention_bias is true"),
    ],
)
def test_saved_spelling_is_refused_by_its_own_names(changes: dict[str, object], message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        ModelConfig.from_json(saved_config(**changes))


@pytest.mark.parametrize(
    "name",
    ["index_kpool", "index_topk", "routed_scaling_factor", "n_group", "hc_mult", "index_kpool_always_select_tail"],
)
def test_missing_field_is_refused_and_never_assumed(name: str) -> None:
    content = micro_config()
    del content["text_config"][name]  # type: ignore[attr-defined]
    with pytest.raises(CheckpointError, match=f"text_config.{name} is missing"):
        ModelConfig.from_json(content)


def test_missing_linear_attention_is_refused() -> None:
    with pytest.raises(CheckpointError, match=r"text_config\.linear_conv_kernel_dim is missing"):
        ModelConfig.from_json(micro_config(linear_attn_config=None))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "llama"}, 'model_type is "llama"'),
        ({"tie_word_embeddings": True}, "tie_word_embeddings is true"),
        ({"text_config": [1]}, r"text_config is \[1\]"),
    ],
)
def test_other_models_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        ModelConfig.from_json(micro_config() | changes)


def test_full_attention_list_may_name_the_mtp_layer() -> None:
    content = micro_config(**published_linear(full_attn_layers=[2, 3, 4]))
    assert ModelConfig.from_json(content) == ModelConfig.from_json(micro_config())


@pytest.mark.parametrize("text", ["", "[]", "{"])
def test_unreadable_config_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(CheckpointError, match=r"config\.json") as refusal:
        ModelConfig.from_folder(tmp_path)
    assert refusal.value.reason is CheckpointReason.CONFIG_UNREADABLE


def test_folder_without_config_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"config\.json: cannot be read"):
        ModelConfig.from_folder(tmp_path)


def test_folder_is_read_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(micro_config()))
    assert ModelConfig.from_folder(tmp_path) == ModelConfig.from_json(micro_config())


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"vocab_size": 93}, "vocab_size"),
        ({"num_attention_heads": 3, "num_key_value_heads": 3}, "num_attention_heads"),
        (published_linear(num_heads=3), "linear_num_heads"),
        ({"intermediate_size": 87}, "intermediate_size"),
        ({"moe_intermediate_size": 255}, "moe_intermediate_size"),
    ],
)
def test_size_that_does_not_divide_by_the_ranks_is_refused(changes: dict[str, object], name: str) -> None:
    config = ModelConfig.from_json(micro_config(**changes))
    config.check_world_size(1)
    with pytest.raises(CheckpointError, match=f"{name} is .* 2 ranks") as refusal:
        config.check_world_size(2)
    assert refusal.value.reason is CheckpointReason.SIZE_NOT_DIVISIBLE
