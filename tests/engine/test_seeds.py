"""Seeds of requests."""

import pytest

from twinspark_engine.seeds import final_seed, seed_for


@pytest.mark.parametrize(
    ("ids", "salt", "seed"),
    [
        ([1, 2, 3], 0, 2418267834652783048),
        ([1, 2, 3], 7, 7438332421110491853),
        ([154820], 0, 4924294996162501541),
    ],
)
def test_the_derived_seed_has_its_known_values(ids: list[int], salt: int, seed: int) -> None:
    assert seed_for(ids, salt) == seed


@pytest.mark.parametrize(
    ("base", "offset", "seed"), [(5, 3, 8), (-1, 0, 2**64 - 1), (-1, 1, 0), (2**63 - 1, 1, 2**63), (-(2**63), 0, 2**63)]
)
def test_the_offset_is_added_modulo_2_to_the_64(base: int, offset: int, seed: int) -> None:
    assert final_seed(base, offset) == seed
