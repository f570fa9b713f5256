"""Quantized matrices, decoded the way that the engine decodes them."""

import pytest
import torch
from torch import Tensor

from twinspark_demo.quantization import matrix
from twinspark_demo.quantization.exl3_tensors import Exl3Tensors
from twinspark_demo.quantization.matrix import dequantize, quantize_experts, quantize_matrix
from twinspark_kernels.exl3 import Codebook, Exl3Weight, codebook_from_markers, decode_tiles, exl3_linear
from twinspark_kernels.row_class import RowClass

GAUSSIAN_ERROR = 0.0070  # relative squared error at 4 bits; the format's quantizer has 0.0063 with a random Hessian
CPU = torch.device("cpu")


def gaussian(out_features: int, in_features: int, seed: int = 0) -> Tensor:
    return 0.03 * torch.randn(out_features, in_features, generator=torch.Generator().manual_seed(seed))


def engine_weight(tensors: Exl3Tensors) -> Tensor:
    """[out, in]: the product of the engine's kernel with the identity."""
    weight = Exl3Weight(decode_tiles(tensors.trellis, tensors.codebook).float(), tensors.suh, tensors.svh)
    return exl3_linear(torch.eye(len(tensors.suh)), weight, row_class=RowClass.PROMPT).t()


def relative_error(actual: Tensor, expected: Tensor) -> float:
    """Squared."""
    return float((actual - expected).square().mean() / expected.square().mean())


@pytest.fixture
def given_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spares the search for the global scale."""
    monkeypatch.setattr(matrix, "find_scale", lambda *_: 0.9)


def awkward_weight() -> Tensor:
    """Channels of very different size, an output of zeros and an input of zeros."""
    weight = gaussian(128, 128) * torch.logspace(-1, 1, 128) * torch.logspace(1, -1, 128)[:, None]
    weight[7], weight[:, 9] = 0, 0
    return weight


@pytest.fixture(scope="module")
def awkward() -> Exl3Tensors:
    """The awkward weight's EXL3."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matrix, "find_scale", lambda *_: 0.9)
        return quantize_matrix(awkward_weight())


@pytest.mark.slow
def test_gaussian_matrix_of_the_demo_keeps_its_values_through_the_engine() -> None:
    weight = gaussian(256, 256)
    assert relative_error(engine_weight(quantize_matrix(weight)), weight) <= GAUSSIAN_ERROR


@pytest.mark.usefixtures("given_scale")
def test_wide_matrix_keeps_its_values_through_the_engine() -> None:
    weight = gaussian(128, 256)
    tensors = quantize_matrix(weight, 6, Codebook.THREE_INST)
    assert relative_error(engine_weight(tensors), weight) <= GAUSSIAN_ERROR / 10
    assert tensors.trellis.shape == (16, 8, 96)


def test_channels_of_very_different_size_are_each_kept(awkward: Exl3Tensors) -> None:
    weight, actual = awkward_weight(), engine_weight(awkward)
    for axis in (0, 1):
        error = (actual - weight).square().sum(axis) / weight.square().sum(axis)
        assert error.nan_to_num(0, 0, 0).max() < 3 * GAUSSIAN_ERROR


def test_an_output_of_zeros_decodes_to_exact_zeros(awkward: Exl3Tensors) -> None:
    assert torch.count_nonzero(engine_weight(awkward)[7]) == 0
    assert torch.count_nonzero(dequantize(awkward)[7]) == 0


def test_an_input_of_zeros_decodes_to_nearly_zero(awkward: Exl3Tensors) -> None:
    assert engine_weight(awkward)[:, 9].norm() < 1e-3 * awkward_weight().norm(dim=0).mean()


@pytest.mark.usefixtures("given_scale")
def test_matrix_of_zeros_decodes_to_exact_zeros() -> None:
    assert torch.count_nonzero(dequantize(quantize_matrix(torch.zeros(128, 128), 8))) == 0


def test_dequantize_is_the_engine_s_weight_but_for_its_rounding(awkward: Exl3Tensors) -> None:
    assert relative_error(dequantize(awkward), engine_weight(awkward)) < (5e-4) ** 2


@pytest.mark.slow
@pytest.mark.usefixtures("given_scale")
def test_experts_are_searched_together_and_come_back_by_name() -> None:
    generator = torch.Generator().manual_seed(5)
    shapes = {"a.gate": (128, 128), "a.down": (128, 256), "b.gate": (128, 128)}
    weights = {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}
    reports: list[tuple[int, int]] = []
    quantized = quantize_experts(weights, CPU, lambda done, total: reports.append((done, total)))
    assert list(quantized) == list(weights)
    for name, weight in weights.items():
        assert relative_error(engine_weight(quantized[name]), weight) <= GAUSSIAN_ERROR, name
    assert reports.count((128, 128)) == 2


@pytest.mark.usefixtures("given_scale")
def test_the_same_seed_gives_the_same_tensors(awkward: Exl3Tensors) -> None:
    again = quantize_matrix(awkward_weight(), generator=torch.Generator().manual_seed(0))
    for one, other in zip(awkward.named("w").values(), again.named("w").values(), strict=True):
        assert torch.equal(one, other)


def test_stored_marker_is_that_of_the_codebook(awkward: Exl3Tensors) -> None:
    assert codebook_from_markers(int(awkward.named("w")["w.mcg"]), None) is Codebook.MCG
    mul1 = Exl3Tensors(awkward.trellis, awkward.suh, awkward.svh, Codebook.MUL1)
    assert codebook_from_markers(None, int(mul1.named("w")["w.mul1"])) is Codebook.MUL1
    plain = Exl3Tensors(awkward.trellis, awkward.suh, awkward.svh, Codebook.THREE_INST)
    assert set(plain.named("w")) == {"w.trellis", "w.suh", "w.svh"}


def test_matrix_of_no_whole_rotation_blocks_is_refused() -> None:
    with pytest.raises(ValueError, match="multiples of 128"):
        quantize_matrix(torch.zeros(128, 192))
