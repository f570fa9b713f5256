"""Short convolution: agrees with its formula and with Transformers; no schedule moves a bit."""

import pytest
import torch
from torch import Tensor
from transformers.models.glm5_next import modeling_glm5_next as hf

from support.row_invariance import ROW_COUNTS, THREAD_COUNTS, check_row_invariance, same_bits, threads
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
from twinspark_kernels.short_conv import short_conv

NUM_SLOTS = 5
LENGTHS = {3: 150, 0: 64, 1: 1, 4: 37}
WIDTHS = (4, 24, 100, 1000, 64)


def make_sequences(width: int, dtype: torch.dtype = torch.float32) -> dict[int, tuple[Tensor]]:
    return {slot: (torch.randn(length, width).to(dtype),) for slot, length in LENGTHS.items()}


def start_state(width: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Zeros for the slots in use, NaN for all others and the trash row."""
    state = torch.full((NUM_SLOTS + 1, 3, width), torch.nan, dtype=dtype)
    state[list(LENGTHS)] = 0
    return state


def run(sequences: dict[int, tuple[Tensor]], weight: Tensor, schedule: Schedule) -> tuple[dict[int, Tensor], Tensor]:
    state = start_state(len(weight), sequences[0][0].dtype)
    op = lambda x, slots, positions: short_conv(x, weight, state, slots, positions)  # noqa: E731
    return run_schedule(op, sequences, schedule), state


@pytest.mark.parametrize("width", WIDTHS)
def test_output_is_the_silu_of_the_four_tap_sum(width: int) -> None:
    sequences, weight = make_sequences(width), torch.randn(width, 4)
    outputs, state = run(sequences, weight, together(LENGTHS, padding=2))
    for slot, (x,) in sequences.items():
        rows = torch.cat((torch.zeros(3, width), x)).double()
        y = torch.stack([rows[tap : tap + len(x)] * weight[:, tap].double() for tap in range(4)]).sum(0)
        torch.testing.assert_close(outputs[slot].double(), y * torch.sigmoid(y), atol=1e-6, rtol=1e-6)
        assert same_bits(state[slot], rows[-3:].float())
    assert state[[2, NUM_SLOTS]].isnan().all()


def test_output_agrees_with_transformers_for_a_prompt_and_its_next_token() -> None:
    width = 24
    x, weight = torch.randn(70, width), torch.randn(width, 4)
    state = torch.zeros(2, 3, width)
    slots, positions = torch.zeros(70, dtype=torch.int64), torch.arange(70)
    ours = [short_conv(x[:69], weight, state, slots[:69], positions[:69])]
    hf_state = x[66:69].t()[None].clone()
    ours.append(short_conv(x[69:], weight, state, slots[69:], positions[69:]))
    prompt = hf.causal_conv1d_fn(x[:69].t()[None], weight, activation="silu")
    token = hf.causal_conv1d_update(x[69:].t()[None], hf_state, weight, activation="silu")
    torch.testing.assert_close(ours[0], prompt[0].t(), atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(ours[1], token[0].t(), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
def test_no_schedule_and_no_thread_count_moves_a_bit(width: int, dtype: torch.dtype) -> None:
    sequences, weight = make_sequences(width, dtype), torch.randn(width, 4)
    with threads(1):
        expected, expected_state = run(sequences, weight, alone(LENGTHS))
    schedules = [together(LENGTHS), together(LENGTHS, padding=3), one_by_one(LENGTHS)]
    schedules += [chunked(LENGTHS, seed=1), windows(LENGTHS, seed=2), windows(LENGTHS, seed=3, most=2)]
    for schedule, count in with_thread_counts(schedules):
        with threads(count):
            outputs, state = run(sequences, weight, schedule)
        assert all(same_bits(outputs[slot], expected[slot]) for slot in LENGTHS)
        assert same_bits(state, expected_state)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
def test_one_row_of_each_of_any_number_of_slots_keeps_its_bits(width: int, dtype: torch.dtype) -> None:
    weight = torch.randn(width, 4)

    def step(x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        return short_conv(x, weight, state, torch.arange(len(x)), torch.full((len(x),), 9)), state

    check_row_invariance(step, lambda n: (torch.randn(n, width).to(dtype), torch.randn(n, 3, width).to(dtype)))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("rows", ROW_COUNTS)
def test_any_number_of_rows_in_a_forward_gives_the_same_bits(width: int, rows: int) -> None:
    lengths = {0: max(ROW_COUNTS)}
    sequences, weight = {0: (torch.randn(lengths[0], width),)}, torch.randn(width, 4)
    with threads(1):
        expected, expected_state = run(sequences, weight, one_by_one(lengths))
    for count in THREAD_COUNTS:
        with threads(count):
            outputs, state = run(sequences, weight, in_forwards_of(rows, lengths))
        assert same_bits(outputs[0], expected[0])
        assert same_bits(state, expected_state)


def test_bf16_output_is_the_fp32_result_rounded_once() -> None:
    x, weight = torch.randn(9, 24).bfloat16(), torch.randn(24, 4)
    slots, positions = torch.zeros(9, dtype=torch.int64), torch.arange(9)
    wide = short_conv(x.float(), weight, torch.zeros(2, 3, 24), slots, positions)
    narrow = short_conv(x, weight, torch.zeros(2, 3, 24).bfloat16(), slots, positions)
    assert same_bits(narrow, wide.bfloat16())


def test_wrong_shapes_and_dtypes_are_refused_by_name() -> None:
    x, weight, state = torch.zeros(2, 8), torch.zeros(8, 4), torch.zeros(3, 3, 8)
    slots, positions = torch.zeros(2, dtype=torch.int64), torch.arange(2)
    with pytest.raises(ValueError, match="weight"):
        short_conv(x, weight[:, :3], state, slots, positions)
    with pytest.raises(ValueError, match="state"):
        short_conv(x, weight, state[:, :2], slots, positions)
    with pytest.raises(TypeError, match="state"):
        short_conv(x, weight, state.bfloat16(), slots, positions)
    with pytest.raises(TypeError, match="slots"):
        short_conv(x, weight, state, slots.int(), positions)
