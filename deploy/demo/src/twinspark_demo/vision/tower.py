"""Tower: patches of several images in, one row for the language model from each square of two by two patches out.

The forward of GLM-5.3-Flash's vision tower for still images. Nothing in it depends on values on the host.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from twinspark_demo.vision.chains import TowerChains
from twinspark_demo.vision.patches import MEAN, STANDARD_DEVIATION, Patches
from twinspark_demo.vision.shape import VisionShape

THETA = 10_000.0
NO_IMAGE = -1


@dataclass
class TowerInput:
    """B sequences of N patches, N a multiple of 4. An image lies whole in one sequence, several may share one."""

    values: Tensor  # uint8 [B, N, 588]: channel, row, column
    places: Tensor  # integer [B, N, 2] row and column within the image
    images: Tensor  # integer [B, N] index of the image in the sequence; NO_IMAGE: padding

    @classmethod
    def of(cls, images: Sequence[Patches]) -> "TowerInput":
        """The images one after another in one sequence, without padding."""
        return cls(
            torch.from_numpy(np.concatenate([image.values for image in images])).flatten(1)[None],
            torch.from_numpy(np.concatenate([image.places for image in images]))[None],
            torch.cat([torch.full((len(image.values),), index) for index, image in enumerate(images)])[None],
        )


class Tower:
    """Runs the forward on parameters that it does not own; `parameters` by published name without prefix."""

    def __init__(self, shape: VisionShape, chains: TowerChains | None = None) -> None:
        self._shape = shape
        self._chains = chains or TowerChains()

    def __call__(self, parameters: Mapping[str, Tensor], inputs: TowerInput, dtype: torch.dtype) -> Tensor:
        """[B, N / 4, out_hidden_size] in dtype, the dtype of products; rows of padding mean nothing."""
        shape, run = self._shape, _Run(self._shape, self._chains, parameters, dtype)
        x = run.embed(inputs.values)
        angles = _angles(inputs.places, shape.head_dim)
        mask = (inputs.images[:, None, :, None] == inputs.images[:, None, None, :]).contiguous()
        for block in range(shape.depth):
            x = run.block(x, f"blocks.{block}.", angles, mask)
        return run.merge(x)


@dataclass(frozen=True, slots=True)
class _Run:
    """One forward."""

    shape: VisionShape
    chains: TowerChains
    parameters: Mapping[str, Tensor]
    dtype: torch.dtype

    def linear(self, x: Tensor, prefix: str, *, bias: bool = True) -> Tensor:
        """x [..., in] -> [..., out] by the weight and bias below prefix."""
        weight = self.parameters[f"{prefix}.weight"].to(self.dtype)
        return F.linear(x, weight, self.parameters[f"{prefix}.bias"].to(self.dtype) if bias else None)

    def embed(self, values: Tensor) -> Tensor:
        """uint8 [B, N, 588] -> [B, N, hidden]. A still image is its frame twice: the weights of the frames add up."""
        mean, deviation = (self._a_value(numbers, values.device) for numbers in (MEAN, STANDARD_DEVIATION))
        normalized = ((values.float() / 255 - mean) / deviation).to(self.dtype)
        weight = self.parameters["patch_embed.proj.weight"].sum(2).flatten(1)
        return F.linear(normalized, weight.to(self.dtype), self.parameters["patch_embed.proj.bias"].to(self.dtype))

    def _a_value(self, a_channel: Sequence[float], device: torch.device) -> Tensor:
        """[588]; filled on the device, where a graph that is being captured takes no copy from the host."""
        return torch.cat([torch.full((self.shape.patch_size**2,), number, device=device) for number in a_channel])

    def block(self, x: Tensor, prefix: str, angles: Tensor, mask: Tensor) -> Tensor:
        """x [B, N, hidden] through one block."""
        eps = self.shape.rms_norm_eps
        x = x + self.attend(
            self.chains.rms_norm(x, self.parameters[f"{prefix}norm1.weight"], eps), prefix, angles, mask
        )
        y = self.chains.rms_norm(x, self.parameters[f"{prefix}norm2.weight"], eps)
        gate, up = (self.linear(y, f"{prefix}mlp.{part}_proj") for part in ("gate", "up"))
        return x + self.linear(self.chains.clamped_swiglu(gate, up, self.shape.swiglu_limit), f"{prefix}mlp.down_proj")

    def attend(self, x: Tensor, prefix: str, angles: Tensor, mask: Tensor) -> Tensor:
        """x [B, N, hidden] after the norm; mask bool [B, 1, N, N]: both in one image."""
        heads = self.linear(x, f"{prefix}attn.qkv").unflatten(-1, (3, self.shape.num_heads, self.shape.head_dim))
        q, k, v = heads.unbind(2)
        eps = self.shape.rms_norm_eps
        q = self.chains.turned(q, self.parameters[f"{prefix}attn.q_norm.weight"], angles, eps)
        k = self.chains.turned(k, self.parameters[f"{prefix}attn.k_norm.weight"], angles, eps)
        o = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), attn_mask=mask)
        return self.linear(o.transpose(1, 2).flatten(2), f"{prefix}attn.proj")

    def merge(self, x: Tensor) -> Tensor:
        """x [B, N, hidden] -> [B, N / 4, out]: four patches to one row, and the projection to the language model."""
        x = self.chains.rms_norm(x, self.parameters["post_layernorm.weight"], self.shape.rms_norm_eps)
        weight = self.parameters["downsample.weight"].permute(0, 2, 3, 1).flatten(1)
        squares = x.unflatten(1, (-1, self.shape.merged)).flatten(2)
        x = F.linear(squares, weight.to(self.dtype), self.parameters["downsample.bias"].to(self.dtype))
        x = self.linear(x, "merger.proj", bias=False)
        norm = (self.parameters[f"merger.post_projection_norm.{part}"] for part in ("weight", "bias"))
        x = self.chains.normed_gelu(x, *norm)
        gate, up = (self.linear(x, f"merger.{part}_proj", bias=False) for part in ("gate", "up"))
        y = self.chains.clamped_swiglu(gate, up, self.shape.swiglu_limit)
        return self.linear(y, "merger.down_proj", bias=False)


def _angles(places: Tensor, head_dim: int) -> Tensor:
    """places [B, N, 2] -> fp32 [B, N, head_dim / 2]: the row's angles, then the column's."""
    steps = torch.arange(0, head_dim // 2, 2, device=places.device, dtype=torch.float32) / (head_dim // 2)
    return (places[..., None].float() * THETA**-steps).flatten(2)
