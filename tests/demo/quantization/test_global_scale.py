"""The global scale: where the format's own quantizer found it, and better than its neighbours."""

import pytest
import torch
from torch import Tensor

from twinspark_demo.quantization.global_scale import find_scale
from twinspark_demo.quantization.rotation import CODEBOOK_STD
from twinspark_demo.quantization.viterbi import encode_tiles
from twinspark_kernels.exl3 import Codebook, codebook_table


def tiles(count: int) -> Tensor:
    return CODEBOOK_STD * torch.randn(count, 256, generator=torch.Generator().manual_seed(0))


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("bits", "codebook", "expected"),
    [
        (4, Codebook.MCG, 0.90),
        pytest.param(4, Codebook.THREE_INST, 0.89, marks=SLOW),
        pytest.param(4, Codebook.MUL1, 0.72, marks=SLOW),
        pytest.param(8, Codebook.MCG, 0.75, marks=SLOW),
    ],
)
def test_scale_is_near_that_of_the_format_s_quantizer(bits: int, codebook: Codebook, expected: float) -> None:
    assert abs(find_scale(tiles(16), bits, codebook) - expected) < 0.07  # 16 tiles are a small sample


@SLOW
def test_scale_beats_its_neighbours_on_other_tiles() -> None:
    found = find_scale(tiles(16), 5, Codebook.MCG)
    fresh = tiles(64)[16:]
    table = codebook_table(Codebook.MCG).float()

    def error(scale: float) -> float:
        return float((table[encode_tiles(fresh * scale, 5, Codebook.MCG)] / scale - fresh).square().mean())

    assert error(found) < min(error(found - 0.1), error(found + 0.1))
