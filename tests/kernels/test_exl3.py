"""EXL3 against golden vectors of the format's reference implementation (tests/golden/exl3/README.md)."""

import hashlib
import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from support.row_invariance import check_row_invariance
from twinspark_kernels.exl3 import (
    MCG_MULTIPLIER,
    MUL1_MULTIPLIER,
    Codebook,
    Exl3Weight,
    codebook_from_markers,
    codebook_table,
    decode_tiles,
    exl3_linear,
    pack_signs,
    pack_states,
    to_stream_order,
    unpack_signs,
    unpack_states,
)
from twinspark_kernels.exl3.tiles import from_stream_order
from twinspark_kernels.hadamard import rotate_in
from twinspark_kernels.row_class import RowClass

GOLDEN = Path(__file__).parent.parent / "golden" / "exl3"
STATS = json.loads((GOLDEN / "stats.json").read_text())
LINEAR = load_file(GOLDEN / "linear_layers.safetensors")
LAYERS = sorted(STATS["layers"])
FORWARD_TOLERANCE = 1.5e-3  # the golden README's: the reference's own fp16 outputs lie at 4e-4 to 6e-4 from float64
FP32_TOLERANCE = 1e-6  # both round only the rotated input; sums in another order


def codebook_of(layer: str) -> Codebook:
    return Codebook(layer.rsplit("_", 1)[1])


def load_weight(tensors: dict[str, torch.Tensor], prefix: str, codebook: Codebook) -> Exl3Weight:
    inner = decode_tiles(tensors[f"{prefix}.trellis"], codebook).float()
    return Exl3Weight(inner, tensors[f"{prefix}.suh"], tensors[f"{prefix}.svh"])


def hadamard_matrix(size: int) -> torch.Tensor:
    """Float64, straight from the definition (-1)^popcount(i & j) / sqrt(128), block diagonal."""
    block = [[(-1.0) ** (i & j).bit_count() for j in range(128)] for i in range(128)]
    return torch.kron(torch.eye(size // 128, dtype=torch.float64), torch.tensor(block, dtype=torch.float64) / 128**0.5)


def dense_float64(inner: torch.Tensor, suh: torch.Tensor, svh: torch.Tensor) -> torch.Tensor:
    rotated = hadamard_matrix(suh.shape[0]) @ inner.double() @ hadamard_matrix(svh.shape[0])
    return suh.double()[:, None] * rotated * svh.double()


def inputs_of(layer: str) -> torch.Tensor:
    x = LINEAR["x_k512" if layer.startswith("k512") else "x_k256"].clone()
    if "pad" in layer:
        x[:, 200:] = 0
    return x


def relative_error(actual: torch.Tensor, expected: torch.Tensor) -> float:
    return float((actual.double() - expected.double()).norm() / expected.double().norm())


@pytest.mark.parametrize("codebook", Codebook)
def test_codebook_tables_have_the_published_hash(codebook: Codebook) -> None:
    digest = hashlib.sha256(codebook_table(codebook).numpy().tobytes()).hexdigest()
    assert digest == STATS["codebook_sha256"][codebook.value]


@pytest.mark.parametrize("codebook", Codebook)
def test_codebook_samples_are_exact(codebook: Codebook) -> None:
    samples = load_file(GOLDEN / "codebook_samples.safetensors")
    values = codebook_table(codebook)[samples["states"].long()]
    assert torch.equal(values.view(torch.int16), samples[codebook.value].view(torch.int16))


@pytest.mark.parametrize("layer", [layer for layer in LAYERS if f"{layer}.w_inner" in LINEAR])
def test_decoded_tiles_are_exact(layer: str) -> None:
    inner = decode_tiles(LINEAR[f"{layer}.trellis"], codebook_of(layer))
    assert torch.equal(inner.view(torch.int16), LINEAR[f"{layer}.w_inner"].view(torch.int16))


@pytest.mark.parametrize("layer", [layer for layer in LAYERS if f"{layer}.x_had" in LINEAR])
def test_rotated_input_is_exact(layer: str) -> None:
    rotated = rotate_in(inputs_of(layer), LINEAR[f"{layer}.suh"])
    assert torch.equal(rotated.view(torch.int16), LINEAR[f"{layer}.x_had"].view(torch.int16))


@pytest.mark.parametrize("layer", LAYERS)
def test_forward_agrees_with_the_reference_kernels(layer: str) -> None:
    weight = load_weight(LINEAR, layer, codebook_of(layer))
    x = inputs_of(layer)
    for array, tensor in LINEAR.items():
        if not array.startswith(f"{layer}.y_m"):
            continue
        rows = tensor.shape[0]
        actual = exl3_linear(x[:rows], weight, row_class=RowClass.DECODE)
        assert relative_error(actual, tensor) < (FP32_TOLERANCE if array.endswith("fp32") else FORWARD_TOLERANCE), array


@pytest.mark.parametrize("layer", LAYERS)
def test_forward_agrees_with_float64(layer: str) -> None:
    weight = load_weight(LINEAR, layer, codebook_of(layer))
    x = inputs_of(layer)
    dense = dense_float64(weight.inner, weight.suh, weight.svh)
    actual = exl3_linear(x, weight, row_class=RowClass.PROMPT)
    assert relative_error(actual, x.double() @ dense) < 5e-4  # only the rotated input is rounded (to fp16)
    stored = LINEAR.get(f"{layer}.w_dense")
    if stored is not None:
        assert relative_error(stored, dense) < 6e-4  # four fp16 roundings in the stored array


def test_columns_that_are_missing_count_as_padding() -> None:
    layer = next(layer for layer in LAYERS if "pad" in layer)
    weight = load_weight(LINEAR, layer, Codebook.MCG)
    x = inputs_of(layer)
    short = exl3_linear(x[:, :200], weight, row_class=RowClass.DECODE)
    assert torch.equal(short, exl3_linear(x, weight, row_class=RowClass.DECODE))
    assert torch.count_nonzero(short[:, 72:]) == 0


def test_experts_agree_with_the_fused_kernel() -> None:
    tensors = load_file(GOLDEN / "moe_experts.safetensors")
    x, actual = tensors["x"], torch.zeros(5, 256)
    for row in range(5):
        for slot in range(2):
            expert = f"experts.{int(tensors['selected_experts'][row, slot])}"
            gate, up, down = (
                load_weight(tensors, f"{expert}.{name}_proj", Codebook.MCG) for name in ("gate", "up", "down")
            )
            one = x[row : row + 1]
            g, u = (exl3_linear(one, weight, row_class=RowClass.DECODE) for weight in (gate, up))
            y = exl3_linear(torch.nn.functional.silu(g) * u, down, row_class=RowClass.DECODE)
            actual[row] += y[0] * tensors["routing_weights"][row, slot].float()
    assert relative_error(actual, tensors["y"]) < 4e-3  # the golden README's: its intermediates are fp16


def test_states_pack_and_unpack_exactly() -> None:
    tensors = load_file(GOLDEN / "encoder_tiles.safetensors")
    names = [name.removesuffix(".packed") for name in tensors if name.endswith(".packed")]
    assert len(names) == 10
    for name in names:
        states = tensors[f"{name}.states"].long() & 0xFFFF
        packed = tensors[f"{name}.packed"]
        bits = packed.shape[-1] // 16
        assert torch.equal(unpack_states(packed)[:, 0], states), name
        assert torch.equal(pack_states(states[:, None], bits), packed), name


def test_stream_order_is_its_own_inverse() -> None:
    matrix = torch.arange(48 * 64).view(48, 64)
    assert torch.equal(from_stream_order(to_stream_order(matrix)), matrix)


def test_legacy_signs_are_exact() -> None:
    tensors = load_file(GOLDEN / "legacy_signs.safetensors")
    assert torch.equal(unpack_signs(tensors["packed_int16"]), tensors["signs_fp16"])
    assert torch.equal(pack_signs(tensors["signs_fp16"]), tensors["packed_int16"])


def test_markers_choose_the_codebook() -> None:
    assert codebook_from_markers(None, None) is Codebook.THREE_INST
    assert codebook_from_markers(-877912083, None) is Codebook.MCG
    assert codebook_from_markers(None, -2082680531) is Codebook.MUL1
    assert codebook_from_markers(MCG_MULTIPLIER, None) is Codebook.MCG
    with pytest.raises(ValueError, match="both markers"):
        codebook_from_markers(MCG_MULTIPLIER, MUL1_MULTIPLIER)
    with pytest.raises(ValueError, match="0x00000001"):
        codebook_from_markers(1, None)


@pytest.mark.parametrize("width", [0, 8, 144, 65])
def test_a_trellis_of_no_known_width_is_refused(width: int) -> None:
    with pytest.raises(ValueError, match="1 to 8 bits"):
        decode_tiles(torch.zeros(8, 8, width, dtype=torch.int16), Codebook.MCG)


def test_inputs_of_the_wrong_shape_are_refused() -> None:
    weight = load_weight(LINEAR, "k256_n128_b4_mcg", Codebook.MCG)
    with pytest.raises(ValueError, match="at most 256 columns"):
        exl3_linear(torch.zeros(1, 257), weight, row_class=RowClass.DECODE)
    with pytest.raises(ValueError, match="its scales say"):
        exl3_linear(
            torch.zeros(1, 128), Exl3Weight(weight.inner, weight.suh[:128], weight.svh), row_class=RowClass.DECODE
        )


@pytest.mark.parametrize("row_class", RowClass)
@pytest.mark.parametrize("layer", ["k256_n384_b4_mcg", "k200pad256_n72pad128_b4_mcg"])
def test_a_row_keeps_its_bits_in_any_batch(row_class: RowClass, layer: str) -> None:
    weight = load_weight(LINEAR, layer, Codebook.MCG)
    width = 200 if "pad" in layer else 256
    check_row_invariance(
        lambda x: exl3_linear(x, weight, row_class=row_class), lambda rows: (torch.randn(rows, width),)
    )
