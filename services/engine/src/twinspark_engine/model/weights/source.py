"""WeightSource: what the loaders of the parts share. One rank's view of the checkpoint, in the compute dtype."""

from dataclasses import dataclass

import torch
from torch import Tensor

from twinspark_engine.model.config import ModelConfig
from twinspark_engine.model.weights.quantization import Quantization
from twinspark_engine.model.weights.reader import CheckpointReader
from twinspark_engine.model.weights.split import RankSplit


@dataclass(frozen=True)
class WeightSource:
    """Reads parameters whole, by rows or by columns of this rank."""

    reader: CheckpointReader
    config: ModelConfig
    split: RankSplit
    dtype: torch.dtype
    quantization: Quantization

    def whole(self, name: str) -> Tensor:
        """A replicated parameter in the compute dtype."""
        return self.reader.read(name, self.dtype)

    def whole_fp32(self, name: str) -> Tensor:
        """A replicated parameter in fp32."""
        return self.reader.read(name, torch.float32)

    def rows(self, name: str, size: int) -> Tensor:
        """This rank's rows of a parameter of `size` rows, in the compute dtype."""
        return self.reader.read(name, self.dtype, rows=self.split.part(size))

    def rows_fp32(self, name: str, size: int) -> Tensor:
        """The same in fp32."""
        return self.reader.read(name, torch.float32, rows=self.split.part(size))

    def columns(self, name: str, size: int) -> Tensor:
        """This rank's columns of a matrix of `size` columns, in the compute dtype."""
        return self.reader.read(name, self.dtype, columns=self.split.part(size))
