"""The Viterbi search against the format's reference encoder, whose states and errors tests/golden/exl3 holds."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from twinspark_demo.quantization import viterbi
from twinspark_demo.quantization.viterbi import encode_tiles
from twinspark_kernels.exl3 import Codebook, codebook_table, pack_states, unpack_states

GOLDEN = Path(__file__).parents[2] / "golden" / "exl3"
REFERENCE_MSE = json.loads((GOLDEN / "stats.json").read_text())["encoder_tiles_mse"]
TILES = load_file(GOLDEN / "encoder_tiles.safetensors")["tiles"]


def decode(states: Tensor, codebook: Codebook) -> Tensor:
    return codebook_table(codebook)[states].float()


def mean_squared_error(states: Tensor, tiles: Tensor, codebook: Codebook = Codebook.MCG) -> float:
    return float((decode(states, codebook) - tiles).square().mean())


def assert_windows_bite_their_tails(states: Tensor, bits: int) -> None:
    """States that do not overlap, the last with the first too, change when their low bits are packed."""
    assert torch.equal(unpack_states(pack_states(states[:, None], bits))[:, 0], states)


@pytest.mark.parametrize("entry", sorted(REFERENCE_MSE))
def test_error_is_at_most_one_percent_above_the_reference(entry: str) -> None:
    name, bits = entry.split("_b")
    codebook = Codebook(name)
    states = encode_tiles(TILES, int(bits), codebook)
    assert mean_squared_error(states, TILES, codebook) <= 1.01 * REFERENCE_MSE[entry]
    assert_windows_bite_their_tails(states, int(bits))


@pytest.mark.parametrize("bits", [4, 7])
def test_values_of_a_valid_tile_are_found_without_error(bits: int) -> None:
    generator = torch.Generator().manual_seed(bits)
    words = torch.randint(-(1 << 15), 1 << 15, (3, 1, 16 * bits), generator=generator, dtype=torch.int16)
    tiles = decode(unpack_states(words)[:, 0], Codebook.MCG)
    found = encode_tiles(tiles, bits, Codebook.MCG)
    assert torch.equal(decode(found, Codebook.MCG), tiles)


def test_a_tile_is_encoded_alike_in_any_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(viterbi, "CPU_BATCH", 3)
    together = encode_tiles(TILES, 6, Codebook.MCG)
    alone = [encode_tiles(tile[None], 6, Codebook.MCG) for tile in TILES]
    assert torch.equal(together, torch.cat(alone))


def test_progress_counts_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(viterbi, "CPU_BATCH", 3)
    reports: list[tuple[int, int]] = []
    encode_tiles(TILES, 8, Codebook.MCG, lambda done, total: reports.append((done, total)))
    assert reports == [(3, 4), (4, 4)]


def test_what_is_no_tile_is_refused() -> None:
    with pytest.raises(ValueError, match=r"fp32 \[n, 256\]"):
        encode_tiles(torch.zeros(2, 255), 4, Codebook.MCG)
    with pytest.raises(ValueError, match=r"got torch\.float16"):
        encode_tiles(torch.zeros(2, 256, dtype=torch.float16), 4, Codebook.MCG)
    with pytest.raises(ValueError, match="9 bits"):
        encode_tiles(torch.zeros(2, 256), 9, Codebook.MCG)
