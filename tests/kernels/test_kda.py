"""KDA, both forms: agree with the recurrence in float64 and with Transformers; no schedule moves a bit."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from transformers.models.glm5_next import modeling_glm5_next as hf

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
from twinspark_kernels.kda import KdaInputs, KdaParams, kda_chunk, kda_recurrent

KdaOp = Callable[[KdaInputs, KdaParams, Tensor, Tensor, Tensor], Tensor]
Sequences = dict[int, tuple[Tensor, ...]]

NUM_SLOTS = 5
LENGTHS = {3: 200, 0: 64, 1: 1, 4: 131}
WINDOW_LENGTHS = {3: 40, 0: 16, 1: 1, 4: 23}
# Heads, K, V: the demo's rank half, the real head, and widths that no vector register divides.
SHAPES = [(2, 64, 64), (1, 128, 128), (3, 4, 4), (2, 24, 100), (1, 100, 24)]
SHAPE_IDS = ["2x64x64", "1x128x128", "3x4x4", "2x24x100", "1x100x24"]
# Beside narrow ones: a state of a million values a head would take long and prove no more.
WIDE_SHAPES = [(1, 1000, 4), (1, 4, 1000)]
WIDE_SHAPE_IDS = ["1x1000x4", "1x4x1000"]


def make_params(H: int, K: int) -> KdaParams:
    return KdaParams(a_log=torch.randn(H) * 0.5, dt_bias=torch.randn(H, K), lower_bound=-5.0)


def make_rows(length: int, H: int, K: int, V: int, dtype: torch.dtype = torch.float32) -> tuple[Tensor, ...]:
    shapes = [(H, K), (H, K), (H, V), (H, K), (H,)]
    scales = [1.0, 1.0, 1.0, 3.0, 2.0]
    rows = [torch.randn(length, *shape) * scale for shape, scale in zip(shapes, scales, strict=True)]
    # Some q and k so short that the epsilon of their norm counts.
    for x in rows[:2]:
        x[::5] *= 3e-4
    return tuple(x.to(dtype) for x in rows)


def start_state(H: int, K: int, V: int) -> Tensor:
    """Random for the slots in use, NaN for all others and the trash row."""
    generator = torch.Generator().manual_seed(3)
    state = torch.full((NUM_SLOTS + 1, H, K, V), torch.nan)
    state[list(LENGTHS)] = torch.randn(len(LENGTHS), H, K, V, generator=generator) * 0.3
    return state


def run(
    op: KdaOp, sequences: Sequences, params: KdaParams, state: Tensor, schedule: Schedule, first_position: int
) -> tuple[dict[int, Tensor], Tensor]:
    state = state.clone()

    def step(*rows: Tensor) -> Tensor:
        *inputs, slots, positions = rows
        return op(KdaInputs(*inputs), params, state, slots, positions)

    return run_schedule(step, sequences, schedule, first_position), state


def one_page(rows: tuple[Tensor, ...], params: KdaParams, state: Tensor) -> tuple[Tensor, Tensor]:
    """The definition in float64, token by token and head by head."""
    q, k, v, gate, beta = (x.double() for x in rows)
    q = q / (q.square().sum(-1, keepdim=True) + 1e-6).sqrt() / q.shape[-1] ** 0.5
    k = k / (k.square().sum(-1, keepdim=True) + 1e-6).sqrt()
    a = params.a_log.double().exp()[:, None] * (gate + params.dt_bias.double())
    decay = (params.lower_bound * torch.sigmoid(a)).exp()
    M, outputs = state.double(), []
    for t in range(len(q)):
        M = decay[t][:, :, None] * M
        recalled = torch.einsum("hk,hkv->hv", k[t], M)
        M = M + torch.einsum("hk,hv->hkv", k[t], torch.sigmoid(beta[t])[:, None] * (v[t] - recalled))
        outputs.append(torch.einsum("hk,hkv->hv", q[t], M))
    return torch.stack(outputs), M


def assert_near(ours: Tensor, exact: Tensor, tolerance: float) -> None:
    assert (ours.double() - exact.double()).abs().max() <= tolerance * exact.abs().max()


@pytest.mark.parametrize(("H", "K", "V"), SHAPES, ids=SHAPE_IDS)
@pytest.mark.parametrize("op", [kda_chunk, kda_recurrent])
def test_both_forms_are_the_recurrence(op: KdaOp, H: int, K: int, V: int) -> None:
    params, state = make_params(H, K), start_state(H, K, V)
    sequences = {slot: make_rows(length, H, K, V) for slot, length in LENGTHS.items()}
    outputs, after = run(op, sequences, params, state, together(LENGTHS, padding=2), first_position=128)
    for slot, rows in sequences.items():
        exact, exact_state = one_page(rows, params, state[slot])
        # fp32 sums of up to 200 steps; measured 6e-7.
        assert_near(outputs[slot], exact, 3e-6)
        assert_near(after[slot], exact_state, 3e-6)
    assert after[[2, NUM_SLOTS]].isnan().all()


@pytest.mark.parametrize("lower_bound", [-5.0, -10.0, -0.5])
@pytest.mark.parametrize("level", [-100.0, 100.0], ids=["no decay", "full decay"])
def test_extreme_decays_neither_overflow_nor_lose_the_recurrence(lower_bound: float, level: float) -> None:
    H, K, V = 2, 24, 24
    params = replace(make_params(H, K), lower_bound=lower_bound)
    q, k, v, gate, beta = make_rows(130, H, K, V)
    rows = (q, k, v, gate + level * (torch.rand_like(gate) < 0.8), beta)
    state = start_state(H, K, V)
    outputs, after = run(kda_chunk, {3: rows}, params, state, alone({3: 130}), first_position=0)
    exact, exact_state = one_page(rows, params, state[3])
    assert_near(outputs[3], exact, 1e-5)
    assert_near(after[3], exact_state, 1e-5)


def test_both_forms_agree_with_transformers() -> None:
    H, K, V = 2, 24, 24
    params, state = make_params(H, K), start_state(H, K, V)
    rows = make_rows(150, H, K, V)
    q, k, v, gate, beta = (x[None] for x in rows)
    a = (gate + params.dt_bias) * params.a_log.exp()[:, None]
    arguments = (q, k, v, params.lower_bound * torch.sigmoid(a), torch.sigmoid(beta))
    for ours, theirs in (
        (kda_chunk, hf.chunk_kimi_delta_attention),
        (kda_recurrent, hf.recurrent_kimi_delta_attention),
    ):
        expected, expected_state = theirs(
            *arguments, initial_state=state[3:4], output_final_state=True, use_qk_l2norm_in_kernel=True
        )
        outputs, after = run(ours, {3: rows}, params, state, alone({3: 150}), first_position=0)
        # Their chunk form sums log decays over 64 tokens in fp32; measured 2e-6.
        assert_near(outputs[3], expected[0], 1e-5)
        assert_near(after[3], expected_state[0], 1e-5)


@pytest.mark.parametrize(("H", "K", "V"), SHAPES, ids=SHAPE_IDS)
def test_no_chunking_or_grouping_of_prompts_moves_a_bit(H: int, K: int, V: int) -> None:
    params, state = make_params(H, K), start_state(H, K, V)
    sequences = {slot: make_rows(length, H, K, V) for slot, length in LENGTHS.items()}
    with threads(1):
        expected = run(kda_chunk, sequences, params, state, alone(LENGTHS), first_position=64)
    schedules = [together(LENGTHS), together(LENGTHS, padding=3)]
    schedules += [chunked(LENGTHS, seed, most=most) for seed, most in ((1, 1), (2, 2), (3, 3))]
    assert_same(kda_chunk, sequences, params, state, schedules, 64, expected)


@pytest.mark.parametrize(("H", "K", "V"), SHAPES, ids=SHAPE_IDS)
def test_no_window_length_slot_or_order_moves_a_bit_of_decode_rows(H: int, K: int, V: int) -> None:
    params, state = make_params(H, K), start_state(H, K, V)
    sequences = {slot: make_rows(length, H, K, V) for slot, length in WINDOW_LENGTHS.items()}
    with threads(1):
        expected = run(kda_recurrent, sequences, params, state, alone(WINDOW_LENGTHS), first_position=37)
    schedules = [one_by_one(WINDOW_LENGTHS), together(WINDOW_LENGTHS, padding=1)]
    schedules += [windows(WINDOW_LENGTHS, seed, most) for seed, most in ((1, 16), (2, 3), (3, 16))]
    assert_same(kda_recurrent, sequences, params, state, schedules, 37, expected)


def test_a_prompt_keeps_its_bits_in_any_slot() -> None:
    H, K, V = 2, 24, 24
    params, rows = make_params(H, K), make_rows(130, H, K, V)
    state = start_state(H, K, V)
    state[:] = state[3].clone()
    for op in (kda_chunk, kda_recurrent):
        runs = [run(op, {slot: rows}, params, state, alone({slot: 130}), 0) for slot in (0, 4)]
        assert same_bits(runs[0][0][0], runs[1][0][4])
        assert same_bits(runs[0][1][0], runs[1][1][4])


@pytest.mark.parametrize(("H", "K", "V"), [*SHAPES, *WIDE_SHAPES], ids=[*SHAPE_IDS, *WIDE_SHAPE_IDS])
@pytest.mark.parametrize("length", [*ROW_COUNTS, 63])
def test_a_row_of_a_cut_cell_has_the_bits_of_the_whole_cell(length: int, H: int, K: int, V: int) -> None:
    params, state, rows = make_params(H, K), start_state(H, K, V), make_rows(64, H, K, V)
    with threads(1):
        whole, _ = run(kda_chunk, {3: rows}, params, state, alone({3: 64}), 0)
    for count in THREAD_COUNTS:
        with threads(count):
            cut, _ = run(kda_chunk, {3: tuple(x[:length] for x in rows)}, params, state, alone({3: length}), 0)
        assert same_bits(cut[3], whole[3][:length])


@pytest.mark.parametrize(("H", "K", "V"), [*SHAPES, *WIDE_SHAPES], ids=[*SHAPE_IDS, *WIDE_SHAPE_IDS])
@pytest.mark.parametrize("rows", ROW_COUNTS)
def test_any_number_of_decode_rows_in_a_forward_gives_the_same_bits(rows: int, H: int, K: int, V: int) -> None:
    lengths = {3: max(ROW_COUNTS)}
    params, state, sequences = make_params(H, K), start_state(H, K, V), {3: make_rows(lengths[3], H, K, V)}
    with threads(1):
        expected = run(kda_recurrent, sequences, params, state, one_by_one(lengths), first_position=37)
    for count in THREAD_COUNTS:
        with threads(count):
            found = run(kda_recurrent, sequences, params, state, in_forwards_of(rows, lengths), first_position=37)
        assert same_bits(found[0][3], expected[0][3])
        assert same_bits(found[1], expected[1])


@pytest.mark.parametrize(("H", "K", "V"), [(1, 64, 64), (2, 24, 100), (3, 4, 4), *WIDE_SHAPES])
@pytest.mark.parametrize(("op", "length"), [(kda_chunk, 3), (kda_recurrent, 1)], ids=["chunk", "recurrent"])
def test_any_number_of_slots_beside_it_moves_no_bit_of_a_slot(op: KdaOp, length: int, H: int, K: int, V: int) -> None:
    params = make_params(H, K)

    def step(*inputs: Tensor) -> tuple[Tensor, Tensor]:
        *rows, state = inputs
        slots = torch.arange(len(state)).repeat_interleave(length)
        positions = torch.arange(length).repeat(len(state))
        out = op(KdaInputs(*(x.flatten(0, 1) for x in rows)), params, state, slots, positions)
        return out.view(len(state), length, H, V), state

    def make_inputs(num_slots: int) -> tuple[Tensor, ...]:
        rows = make_rows(num_slots * length, H, K, V)
        return *(x.view(num_slots, length, *x.shape[1:]) for x in rows), torch.randn(num_slots, H, K, V) * 0.3

    check_row_counts(step, make_inputs)


def test_bf16_rows_are_rounded_at_beta_and_at_the_output_only() -> None:
    H, K, V = 2, 24, 24
    params, state = make_params(H, K), start_state(H, K, V)
    narrow = make_rows(70, H, K, V, torch.bfloat16)
    *wide, beta = (x.float() for x in narrow)
    rounded = torch.sigmoid(beta).bfloat16().double()
    wide = [*wide, torch.logit(rounded)]
    exact, exact_state = one_page(tuple(wide), params, state[3])
    for op in (kda_chunk, kda_recurrent):
        outputs, after = run(op, {3: narrow}, params, state, alone({3: 70}), 0)
        assert outputs[3].dtype == torch.bfloat16
        assert_near(outputs[3], exact, 2**-8)
        assert_near(after[3], exact_state, 3e-6)


def test_a_chunk_off_the_cells_and_wrong_inputs_are_refused() -> None:
    params, state = make_params(2, 4), torch.zeros(3, 2, 4, 4)
    inputs = KdaInputs(*make_rows(3, 2, 4, 4))
    slots, positions = torch.zeros(3, dtype=torch.int64), torch.arange(3)
    with pytest.raises(ValueError, match=r"positions: .* multiple of 64, got 5"):
        kda_chunk(inputs, params, state, slots, positions + 5)
    with pytest.raises(ValueError, match="lower_bound"):
        kda_chunk(inputs, replace(params, lower_bound=-11.0), state, slots, positions)
    with pytest.raises(TypeError, match="state"):
        kda_recurrent(inputs, params, state.double(), slots, positions)
    with pytest.raises(ValueError, match="beta"):
        kda_recurrent(replace(inputs, beta=inputs.beta[:, :1]), params, state, slots, positions)
    with pytest.raises(ValueError, match="multiple of 16"):
        kda_recurrent(replace(inputs, v=torch.zeros(3, 2, 3)), params, torch.zeros(3, 2, 4, 3), slots, positions)


def assert_same(
    op: KdaOp,
    sequences: Sequences,
    params: KdaParams,
    state: Tensor,
    schedules: Sequence[Schedule],
    first_position: int,
    expected: tuple[dict[int, Tensor], Tensor],
) -> None:
    for schedule, count in with_thread_counts(schedules):
        with threads(count):
            outputs, after = run(op, sequences, params, state, schedule, first_position)
        assert all(same_bits(outputs[slot], expected[0][slot]) for slot in sequences)
        assert same_bits(after, expected[1])
