"""VisionShape: the sizes of a tower, and its part of config.json in the published spelling."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class VisionShape:
    """Sizes of one tower; names as in `vision_config`."""

    depth: int
    hidden_size: int
    num_heads: int
    intermediate_size: int
    out_hidden_size: int
    projection_intermediate_size: int
    patch_size: int = 14
    temporal_patch_size: int = 2
    spatial_merge_size: int = 2
    in_channels: int = 3
    rms_norm_eps: float = 1e-5
    swiglu_limit: float = 10.0

    @property
    def head_dim(self) -> int:
        """Width of a head; a multiple of 4."""
        return self.hidden_size // self.num_heads

    @property
    def patch_values(self) -> int:
        """Values of one patch of one frame."""
        return self.in_channels * self.patch_size**2

    @property
    def merged(self) -> int:
        """Patches of one row for the language model."""
        return self.spatial_merge_size**2

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> "VisionShape":
        """From the `vision_config` of a config.json; KeyError names what is missing."""
        return cls(**{name: config[name] for name in cls.__slots__})

    def config_json(self) -> dict[str, Any]:
        """The `vision_config` of config.json."""
        sizes = {name: getattr(self, name) for name in self.__slots__}
        return {
            "model_type": "glm5_next_vision",
            "hidden_act": "silu",
            "attention_bias": True,
            "image_size": 448,
            **sizes,
        }


DEMO_VISION = VisionShape(
    depth=4, hidden_size=128, num_heads=4, intermediate_size=256, out_hidden_size=256, projection_intermediate_size=512
)
