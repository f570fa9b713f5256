"""Keyed draw: the published vectors, an independent integer version, ties, the distribution, row invariance."""

import math
import random

import pytest
import torch

from support.row_invariance import THREAD_COUNTS, WIDTHS, check_row_invariance, threads
from twinspark_kernels.keyed_draw import draw, gumbel, to_signed, uniform

MASK = (1 << 64) - 1

# (seed, position, id) -> u, computed twice and independently of this code.
VECTORS = [
    ((0, 0, 0), 0.20310281705476102),
    ((1234, 10, 0), 0.1752692791553186),
    ((1234, 10, 1), 0.08161428209528027),
    ((1234, 11, 0), 0.18877573825592248),
    ((1234, 10, 154879), 0.3306136552405187),
    ((2**63 - 1, 1048575, 77440), 0.1017250062951281),
]


def mix(x: int) -> int:
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 & MASK
    x ^= x >> 27
    x = x * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


def uniform_in_python(seed: int, position: int, token_id: int) -> float:
    x = mix((seed + 0x9E3779B97F4A7C15) & MASK)
    x = mix(x ^ (position * 0xD1B54A32D192ED03 & MASK))
    x = mix(x ^ token_id)
    return min((x >> 11) * 2.0**-53 + 2.0**-54, 1 - 2.0**-53)


def integers(*values: int) -> torch.Tensor:
    return torch.tensor([to_signed(value) for value in values])


@pytest.mark.parametrize(("key", "expected"), VECTORS)
def test_the_published_vectors_hold(key: tuple[int, int, int], expected: float) -> None:
    seed, position, token_id = key
    assert uniform(integers(seed), integers(position), integers(token_id)[None]).item() == expected
    assert uniform_in_python(*key) == expected


def test_torch_and_python_integers_agree_for_any_seed() -> None:
    source = random.Random(5)
    seeds = [source.randrange(1 << 64) for _ in range(200)] + [MASK, 1 << 63, -1 % (1 << 64)]
    positions = [source.randrange(1 << 20) for _ in seeds]
    ids = [source.randrange(154_880) for _ in seeds]
    found = uniform(integers(*seeds), integers(*positions), torch.tensor(ids)[:, None])[:, 0].tolist()
    assert found == [uniform_in_python(*key) for key in zip(seeds, positions, ids, strict=True)]


def keys(rows: int, width: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Seeds, positions and ids of some rows."""
    return torch.arange(rows) * 7919, torch.arange(rows) + 100, torch.randint(0, 154_880, (rows, width))


@pytest.mark.parametrize("width", [1, *WIDTHS])
def test_noise_keeps_its_bits_in_any_batch(width: int) -> None:
    check_row_invariance(gumbel, lambda n: keys(n, width))


@pytest.mark.parametrize("width", [1, *WIDTHS])
def test_a_draw_and_its_score_are_the_same_in_any_batch(width: int) -> None:
    def make_inputs(rows: int) -> tuple[torch.Tensor, ...]:
        seeds, positions, ids = keys(rows, width)
        kept = torch.rand(rows, width) < 0.7
        kept[:, 0] = True
        return torch.randn(rows, width, dtype=torch.float64), ids, kept, seeds, positions

    check_row_invariance(draw, make_inputs)


@pytest.mark.parametrize("width", [4, 24, 100, 1000])
def test_noise_keeps_its_bits_at_any_column(width: int) -> None:
    seeds, positions, ids = keys(17, width)
    for count in THREAD_COUNTS:
        with threads(count):
            together = gumbel(seeds, positions, ids)
            for column in range(0, width, max(1, width // 7)):
                assert torch.equal(gumbel(seeds, positions, ids[:, column : column + 1])[:, 0], together[:, column])


def test_equal_scores_go_to_the_lower_id_and_dropped_columns_never_win() -> None:
    # The same id twice has the same noise, so its two columns tie exactly.
    ids = torch.tensor([[9, 4, 9, 4]])
    scaled = torch.tensor([[0.0, 50.0, 0.0, 50.0]], dtype=torch.float64)
    kept = torch.tensor([[True, False, True, True]])
    column, score = draw(scaled, ids, kept, torch.tensor([1]), torch.tensor([2]))
    assert column.item() == 3
    expected = 50.0 + gumbel(torch.tensor([1]), torch.tensor([2]), torch.tensor([[4]])).item()
    assert score.item() == expected
    flat = torch.full((1, 3), -torch.inf, dtype=torch.float64)
    column, _ = draw(flat, torch.tensor([[8, 5, 2]]), torch.tensor([[True, True, False]]), *[torch.tensor([0])] * 2)
    assert column.item() == 1


def test_draws_follow_the_distribution() -> None:
    probabilities = torch.tensor([0.5, 0.3, 0.15, 0.05], dtype=torch.float64)
    count = 40_000
    scaled = probabilities.log()[None].expand(count, -1)
    columns, _ = draw(
        scaled,
        torch.arange(4)[None],
        torch.ones(count, 4, dtype=torch.bool),
        torch.full((count,), 77),
        torch.arange(count),
    )
    shares = torch.bincount(columns, minlength=4) / count
    # Five standard deviations of a share of 40,000 draws.
    limit = 5 * math.sqrt(0.25 / count)
    assert (shares - probabilities).abs().max() < limit


def test_refused_inputs_raise() -> None:
    one = torch.zeros(1, dtype=torch.int64)
    with pytest.raises(ValueError, match="seeds must be int64"):
        uniform(torch.zeros(1), one, one[None])
    with pytest.raises(ValueError, match="shapes differ"):
        gumbel(one, torch.zeros(2, dtype=torch.int64), one[None])
    with pytest.raises(ValueError, match="scaled must be float64"):
        draw(torch.zeros(1, 1), one[None], torch.ones(1, 1, dtype=torch.bool), one, one)
