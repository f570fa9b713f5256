"""DrafterConfig: sizes of a drafter, and its config.json in the published spelling."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from twinspark_engine.model.config import ModelConfig
from twinspark_tools.tiny_checkpoint.shapes import SHAPES
from twinspark_tools.tiny_checkpoint.special_tokens import NUM_ROOM_ROWS

ARCHITECTURE = "DFlash2DraftModel"
_TOP_LEVEL_SIZES = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "sliding_window",
    "num_target_layers",
    "max_position_embeddings",
)
_BLOCK_SIZES = (
    "block_size",
    "conv_group_size",
    "conv_kernel_size",
    "mask_token_id",
    "selector_rank",
    "selector_top_k",
)
_SIZES = _TOP_LEVEL_SIZES + _BLOCK_SIZES


@dataclass(frozen=True, slots=True)
class DrafterConfig:
    """Names as in config.json; those of `dflash_config` among them."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    sliding_window: int  # a row sees the context row k positions earlier if k is less
    num_target_layers: int
    target_layer_ids: tuple[int, ...]
    mask_token_id: int  # a row of the target's embedding
    selector_rank: int
    eos_token_ids: tuple[int, ...]
    max_position_embeddings: int = 32768
    block_size: int = 8  # the pending token, and a mask for each draft
    conv_kernel_size: int = 2
    conv_group_size: int = 16
    selector_top_k: int = 16
    rope_theta: float = 10_000.0
    rms_norm_eps: float = 1e-5

    @property
    def num_drafts(self) -> int:
        """Tokens that one block drafts."""
        return self.block_size - 1

    @property
    def num_conv_groups(self) -> int:
        """Groups of channels that share the part of a convolution's kernel that depends on the row."""
        return self.hidden_size // self.conv_group_size

    def check_target(self, target: ModelConfig) -> None:
        """ValueError unless the drafter is one for this target."""
        ours = (self.vocab_size, self.hidden_size, self.num_target_layers)
        theirs = (target.vocab_size, target.hidden_size, target.num_hidden_layers)
        if ours != theirs:
            raise ValueError(f"vocabulary, width and layers of the target are {theirs}, the drafter's are for {ours}")

    def to_json(self) -> dict[str, object]:
        """The content of config.json."""
        return {
            "architectures": [ARCHITECTURE],
            "model_type": "qwen3",
            "dtype": "bfloat16",
            "vocab_size": self.vocab_size,
            "hidden_size": self.hidden_size,
            "intermediate_size": self.intermediate_size,
            "hidden_act": "silu",
            "num_hidden_layers": self.num_hidden_layers,
            "num_attention_heads": self.num_attention_heads,
            "num_key_value_heads": self.num_key_value_heads,
            "head_dim": self.head_dim,
            "attention_bias": False,
            "attention_dropout": 0.0,
            "is_causal": False,
            "layer_types": ["sliding_attention"] * self.num_hidden_layers,
            "use_sliding_window": True,
            "sliding_window": self.sliding_window,
            "rope_parameters": {"rope_type": "default", "rope_theta": self.rope_theta},
            "rms_norm_eps": self.rms_norm_eps,
            "max_position_embeddings": self.max_position_embeddings,
            "num_target_layers": self.num_target_layers,
            "tie_word_embeddings": False,
            "eos_token_id": list(self.eos_token_ids),
            "pad_token_id": self.eos_token_ids[0],
            "dflash_config": {
                "block_size": self.block_size,
                "conv_group_size": self.conv_group_size,
                "conv_kernel_size": self.conv_kernel_size,
                "mask_token_id": self.mask_token_id,
                "selector_rank": self.selector_rank,
                "selector_top_k": self.selector_top_k,
                "target_layer_ids": list(self.target_layer_ids),
            },
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "DrafterConfig":
        """Reads what to_json writes; ValueError names a field that is missing or asks for something else."""
        try:
            config = cls._read(content)
        except (KeyError, TypeError) as error:
            raise ValueError(f"config.json: {error!r}") from error
        sizes = {field: getattr(config, field) for field in _SIZES}
        wrong = [f"{name} is {size}" for name, size in sizes.items() if type(size) is not int or size < 1]
        wrong += [f"no layer {tap}" for tap in config.target_layer_ids if tap not in range(config.num_target_layers)]
        if wrong:
            raise ValueError(f"config.json: {', '.join(wrong)}")
        wanted = config.to_json()
        others = sorted(name for name in wanted if content.get(name) != wanted[name])
        if others:
            raise ValueError(f"config.json: {', '.join(others)}: {[content.get(name) for name in others]}")
        return config

    @classmethod
    def _read(cls, content: Mapping[str, Any]) -> "DrafterConfig":
        block = content["dflash_config"]
        return cls(
            **{name: content[name] for name in _TOP_LEVEL_SIZES},
            **{name: block[name] for name in _BLOCK_SIZES},
            rms_norm_eps=content["rms_norm_eps"],
            target_layer_ids=tuple(block["target_layer_ids"]),
            eos_token_ids=tuple(content["eos_token_id"]),
            rope_theta=content["rope_parameters"]["rope_theta"],
        )


_SHAPE = SHAPES["demo"]

DEMO = DrafterConfig(
    vocab_size=_SHAPE.vocab_size,
    hidden_size=_SHAPE.hidden_size,
    intermediate_size=512,
    num_hidden_layers=5,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=64,
    sliding_window=512,
    num_target_layers=_SHAPE.num_layers,
    target_layer_ids=(1, 3, 4, 6, 7),
    mask_token_id=_SHAPE.vocab_size - NUM_ROOM_ROWS,
    selector_rank=64,
    eos_token_ids=tuple(_SHAPE.eos_token_ids),
)
"""Of the demo model."""
