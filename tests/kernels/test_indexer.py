"""Indexer: agrees with its formula and with Transformers; ties go to the lower pool; no schedule moves a bit."""

import pytest
import torch
from torch import Tensor
from transformers import Glm5NextTextConfig
from transformers.models.glm5_next import modeling_glm5_next as hf

from support.hf_reference import StableTopk
from support.paged import paged
from support.row_invariance import ROW_COUNTS, THREAD_COUNTS, check_row_counts, same_bits, threads
from support.schedules import (
    Schedule,
    alone,
    chunked,
    in_forwards_of,
    one_by_one,
    run_schedule,
    together,
    windows,
    with_thread_counts,
)
from twinspark_kernels.indexer import pool_scores, select_pools
from twinspark_kernels.pool_keys import update_pools

NUM_SLOTS = 5
LENGTHS = {3: 70, 0: 33, 1: 1, 4: 17}
FIRST_POSITION = 2560
SHAPES = [(4, 64), (2, 4), (3, 24), (1, 100)]
SHAPE_IDS = ["4x64", "2x4", "3x24", "1x100"]
WIDTHS = (4, 24, 100, 1000, 64)

Sequences = dict[int, tuple[Tensor, Tensor]]


def make_sequences(heads: int, width: int) -> Sequences:
    return {slot: (torch.randn(n, heads, width), torch.randn(n, heads)) for slot, n in LENGTHS.items()}


def make_pools(pool: int, width: int, lengths: dict[int, int], first_position: int) -> Tensor:
    """Pool keys up to each slot's last row and a few more, then NaN; all NaN for slots that are not in use."""
    pools = torch.full((NUM_SLOTS + 1, (first_position + 200) // pool, width), torch.nan)
    for slot, length in lengths.items():
        complete = (first_position + length) // pool
        pools[slot, :complete] = torch.randn(complete, width)
    return pools


def run(
    sequences: Sequences, pools: Tensor, schedule: Schedule, pool: int, num_selected: int
) -> tuple[dict[int, Tensor], dict[int, Tensor]]:
    """Scores and selections."""
    blocks = paged(pools)

    def select(*rows: Tensor) -> Tensor:
        q, w, slots, positions = rows
        return select_pools(q, w, blocks, slots, positions, num_selected=num_selected, pool=pool)

    def score(*rows: Tensor) -> Tensor:
        q, w, slots, positions = rows
        return pool_scores(q, w, blocks, slots, positions, pool=pool).nan_to_num(neginf=-1e30)

    return (
        run_schedule(score, sequences, schedule, FIRST_POSITION),
        run_schedule(select, sequences, schedule, FIRST_POSITION),
    )


@pytest.mark.parametrize(("heads", "width"), SHAPES, ids=SHAPE_IDS)
@pytest.mark.parametrize("pool", [4, 16])
def test_scores_are_the_formula_and_the_best_candidates_are_kept(pool: int, heads: int, width: int) -> None:
    sequences = make_sequences(heads, width)
    pools = make_pools(pool, width, LENGTHS, FIRST_POSITION)
    scores, selections = run(sequences, pools, together(LENGTHS, padding=2), pool, num_selected=64)
    for slot, (q, w) in sequences.items():
        candidates = (FIRST_POSITION + len(q)) // pool
        dots = torch.einsum("thd,pd->thp", q.double(), pools[slot, :candidates].double()) * width**-0.5
        exact = (dots.relu() * w.double()[..., None]).sum(1)
        for row in range(len(q)):
            count = (FIRST_POSITION + row + 1) // pool
            torch.testing.assert_close(scores[slot][row, :count].double(), exact[row, :count], atol=1e-5, rtol=1e-5)
            assert (scores[slot][row, count:] == -1e30).all()
            order = scores[slot][row, :count].sort(descending=True, stable=True).indices
            assert selections[slot][row].tolist() == sorted(order[:64].tolist())


@pytest.mark.parametrize(("heads", "width"), SHAPES, ids=SHAPE_IDS)
@pytest.mark.parametrize("pool", [4, 16])
def test_no_schedule_and_no_thread_count_moves_a_bit(pool: int, heads: int, width: int) -> None:
    sequences = make_sequences(heads, width)
    pools = make_pools(pool, width, LENGTHS, FIRST_POSITION)
    with threads(1):
        expected = run(sequences, pools, alone(LENGTHS), pool, num_selected=32)
    schedules = [together(LENGTHS, padding=1), chunked(LENGTHS, seed=1)]
    schedules += [one_by_one(LENGTHS), windows(LENGTHS, seed=2)]
    for schedule, count in with_thread_counts(schedules):
        with threads(count):
            found = run(sequences, pools, schedule, pool, num_selected=32)
        for ours, theirs in zip(found, expected, strict=True):
            assert all(same_bits(ours[slot], theirs[slot]) for slot in LENGTHS)


@pytest.mark.parametrize("width", WIDTHS)
def test_one_row_of_each_of_any_number_of_slots_keeps_its_scores(width: int) -> None:
    most = max(ROW_COUNTS)
    pools = paged(torch.randn(most, 40, width))

    def score(q: Tensor, w: Tensor, slots: Tensor, positions: Tensor) -> Tensor:
        return pool_scores(q, w, pools, slots, positions, pool=4)

    def make_inputs(rows: int) -> tuple[Tensor, ...]:
        return torch.randn(rows, 2, width), torch.randn(rows, 2), torch.randperm(most), 120 + torch.arange(rows)

    check_row_counts(score, make_inputs)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("rows", ROW_COUNTS)
def test_any_number_of_rows_in_a_forward_gives_the_same_scores_and_pools(width: int, rows: int) -> None:
    lengths = {0: max(ROW_COUNTS)}
    sequences = {0: (torch.randn(lengths[0], 2, width), torch.randn(lengths[0], 2))}
    pools = make_pools(16, width, lengths, FIRST_POSITION)
    with threads(1):
        expected = run(sequences, pools, one_by_one(lengths), 16, num_selected=32)
    for count in THREAD_COUNTS:
        with threads(count):
            found = run(sequences, pools, in_forwards_of(rows, lengths), 16, num_selected=32)
        assert all(same_bits(ours[0], theirs[0]) for ours, theirs in zip(found, expected, strict=True))


def test_blocks_of_rows_move_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    sequences = make_sequences(3, 24)
    pools = make_pools(4, 24, LENGTHS, FIRST_POSITION)
    expected = run(sequences, pools, alone(LENGTHS), 4, num_selected=32)
    monkeypatch.setattr("twinspark_kernels.indexer.reference.MAX_VALUES", 7 * 3 * 512)
    found = run(sequences, pools, alone(LENGTHS), 4, num_selected=32)
    assert all(same_bits(found[1][slot], expected[1][slot]) for slot in LENGTHS)


@pytest.mark.parametrize("pool", [4, 16])
def test_all_candidates_are_taken_while_there_are_no_more_than_places(pool: int) -> None:
    rows = 10 * pool
    q, w = torch.full((rows, 2, 8), torch.nan), torch.full((rows, 2), torch.nan)
    slots, positions = torch.zeros(rows, dtype=torch.int64), torch.arange(rows)
    limit = 5 * pool + pool - 1  # the first position with six candidates
    pools = paged(torch.full((2, 20, 8), torch.nan))
    dense = select_pools(q[:limit], w[:limit], pools, slots[:limit], positions[:limit], num_selected=5, pool=pool)
    for row in range(limit):
        count = (row + 1) // pool
        assert dense[row].tolist() == [*range(count), *[-1] * (5 - count)]
    real = paged(torch.randn(2, 20, 8))
    scored = select_pools(q.nan_to_num(1.0), w.nan_to_num(1.0), real, slots, positions, num_selected=5, pool=pool)
    assert same_bits(scored[:limit], dense)
    assert (scored[limit:] >= 0).all()


def test_equal_scores_go_to_the_lower_pool() -> None:
    pools = torch.zeros(1, 40, 4)
    pools[0, [7, 19, 30], 0] = 3.0  # the others give exact zeros
    blocks, q = paged(pools), torch.zeros(1, 2, 4)
    q[:, :, 0] = 1.0
    for weight, expected in ((1.0, [0, 1, 2, 7, 19, 30]), (-1.0, [0, 1, 2, 3, 4, 5])):
        w = torch.full((1, 2), weight)
        slots, positions = torch.zeros(1, dtype=torch.int64), torch.tensor([159])
        assert select_pools(q, w, blocks, slots, positions, num_selected=6, pool=4).tolist() == [expected]


def test_a_row_of_nan_selects_something_and_leaves_its_neighbours_alone() -> None:
    sequences = make_sequences(2, 4)
    pools = paged(make_pools(4, 4, LENGTHS, FIRST_POSITION))
    q, w = sequences[3]
    slots, positions = torch.full((70,), 3), torch.arange(70) + FIRST_POSITION
    expected = select_pools(q, w, pools, slots, positions, num_selected=32, pool=4)
    broken = q.clone()
    broken[50] = torch.nan
    found = select_pools(broken, w, pools, slots, positions, num_selected=32, pool=4)
    others = torch.arange(70) != 50
    assert same_bits(found[others], expected[others])
    assert found[50].min() >= 0


@pytest.mark.parametrize("kpool", [4, 16])
@pytest.mark.parametrize("length", [1, 63, 130, 331])
def test_selection_agrees_with_transformers(kpool: int, length: int) -> None:
    config = Glm5NextTextConfig(
        hidden_size=24, q_lora_rank=12, index_n_heads=3, index_head_dim=20, index_topk=64, index_kpool=kpool
    )
    module = hf.Glm5NextTextIndexer(config, 0)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    x, residual = torch.randn(length, 24), torch.randn(length, 12)
    seen: list[Tensor] = []
    with StableTopk(lambda scores, _: seen.append(scores)), torch.no_grad():
        theirs = module(x[None], residual[None], torch.ones(1, length, dtype=torch.bool), None)[0]
        q = module.wq_b(residual).view(length, 3, 20)
        keys, gates = module.k_norm(module.wk(x)), x @ module.index_kpool_compress_gate.t()
        w = module.weights_proj(x) * 3**-0.5
        ape = module.index_kpool_compress_ape.detach()
    slots, positions = torch.zeros(length, dtype=torch.int64), torch.arange(length)
    rings, pools = torch.zeros(2, 2, 64, 20), paged(torch.zeros(1, 400 // kpool, 20))
    update_pools(keys, gates, ape, rings[0], rings[1], pools, slots, positions)
    scores = pool_scores(q, w, pools, slots, positions, pool=kpool)
    width = seen[0].shape[-1]
    visible = scores[:, :width] > -torch.inf
    torch.testing.assert_close(scores[:, :width][visible], seen[0][0][visible], atol=1e-4, rtol=1e-4)
    selected = select_pools(q, w, pools, slots, positions, num_selected=64 // kpool, pool=kpool)
    for row in range(length):
        tail = range((row + 1) // kpool * kpool, row + 1)
        ours = [p * kpool + member for p in selected[row].tolist() if p >= 0 for member in range(kpool)] + list(tail)
        assert sorted(ours) == sorted(token for token in theirs[row].tolist() if token >= 0)


def test_wrong_shapes_and_dtypes_are_refused_by_name() -> None:
    q, w, pools = torch.zeros(2, 3, 8), torch.zeros(2, 3), paged(torch.zeros(3, 9, 8))
    slots, positions = torch.zeros(2, dtype=torch.int64), torch.arange(2)
    with pytest.raises(ValueError, match="head_weights"):
        select_pools(q, w[:, :2], pools, slots, positions, num_selected=2, pool=4)
    with pytest.raises(TypeError, match="head_weights"):
        select_pools(q, w.bfloat16(), pools, slots, positions, num_selected=2, pool=4)
    with pytest.raises(ValueError, match="pools"):
        select_pools(q, w, paged(torch.zeros(3, 9, 4)), slots, positions, num_selected=2, pool=4)
    with pytest.raises(ValueError, match="num_selected"):
        select_pools(q, w, pools, slots, positions, num_selected=0, pool=4)
