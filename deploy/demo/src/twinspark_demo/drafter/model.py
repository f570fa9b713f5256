"""Drafter: taps of the target's layers and blocks in, one row for each draft out. Trainable, many blocks at a time."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from twinspark_demo.drafter.blocks import Blocks
from twinspark_demo.drafter.config import DrafterConfig
from twinspark_demo.drafter.layer import run_layer
from twinspark_demo.drafter.parameters import initial, tensor_shapes
from twinspark_demo.training.model.chains import rms_norm
from twinspark_demo.training.model.parameters import Weights, plant


class Drafter(nn.Module):
    """Parameters are fp32 and carry their published names; the target's embedding and head are handed in."""

    def __init__(self, config: DrafterConfig, *, seed: int = 0, compute_dtype: torch.dtype | None = None) -> None:
        """compute_dtype: of rows and products; None is bfloat16 on a GPU and float32 on the CPU."""
        super().__init__()
        self.config = config
        self._compute_dtype = compute_dtype
        generator = torch.Generator().manual_seed(seed)
        for name, shape in tensor_shapes(config).items():
            plant(self, name, initial(name, shape, config, generator))

    def forward(self, taps: Tensor, positions: Tensor, blocks: Blocks, embedding: Tensor) -> Tensor:
        """Rows 1 to 7 of every block after the final norm, [B, A, 7, D].

        taps [B, T, taps D]: means of the target's streams after the tapped layers, side by side; positions [B, T];
        embedding [V, D] of the target.
        """
        w, eps = self.weights(), self.config.rms_norm_eps
        context = rms_norm(F.linear(taps.to(w.dtype), w("fc.weight")), w.master("hidden_norm.weight"), eps)
        x = F.embedding(blocks.ids, embedding).to(w.dtype)
        for layer in range(self.config.num_hidden_layers):
            x = run_layer(x, context, positions, blocks, w.under(f"layers.{layer}."), self.config)
        return rms_norm(x[:, :, 1:], w.master("norm.weight"), eps)

    def weights(self) -> Weights:
        """The parameters for one forward."""
        tensors: dict[str, Tensor] = dict(self.named_parameters())
        on_gpu = tensors["fc.weight"].device.type == "cuda"
        return Weights(tensors, self._compute_dtype or (torch.bfloat16 if on_gpu else torch.float32))
