"""The choice of chunks, by itself: what fits, who is first, and how long anybody waits."""

from hypothesis import given
from hypothesis import strategies as st

from support.scheduler_driver import build_request
from twinspark_engine.scheduler.chunks import PASS_LIMIT, ChunkBudget, book_chunks, choose_chunks
from twinspark_engine.scheduler.plan import CELL_TOKENS, PrefillChunk
from twinspark_engine.scheduler.running import Delivery, RunningRequest

OWED = ChunkBudget(long_tokens=128, forward_tokens=256, is_decode_owed=True)


def prompt(slot: int, num_tokens: int, *, background: bool = False, short: bool = False) -> RunningRequest:
    request = build_request(f"r{slot}", num_tokens, is_background=background)
    return RunningRequest(request, slot, Delivery(0.0), turn=slot, is_short=short)


def test_short_prompts_fill_the_forward_beyond_what_long_ones_may_take() -> None:
    prompts = [prompt(0, 900), prompt(1, 50, short=True), prompt(2, 60, short=True)]
    chosen = choose_chunks(prompts, ChunkBudget(128, 256))
    assert chosen == (PrefillChunk(1, 0, 50), PrefillChunk(2, 0, 60), PrefillChunk(0, 0, 128))


def test_only_short_prompts_run_while_decode_is_owed() -> None:
    prompts = [prompt(0, 100), prompt(1, 50, short=True)]
    assert choose_chunks(prompts, OWED) == (PrefillChunk(1, 0, 50),)
    assert choose_chunks(prompts[:1], OWED) == ()


def test_a_prompt_passed_over_for_long_runs_before_short_ones_and_while_decode_is_owed() -> None:
    late = prompt(0, 900)
    late.times_passed_over = PASS_LIMIT
    prompts = [late, prompt(1, 200, short=True)]
    assert choose_chunks(prompts, OWED) == (PrefillChunk(0, 0, 128), PrefillChunk(1, 0, 128))
    late.times_passed_over -= 1
    assert choose_chunks(prompts, OWED) == (PrefillChunk(1, 0, 200),)


def test_foreground_prompts_go_before_background_ones_until_these_waited_long() -> None:
    prompts = [prompt(0, 64, background=True), prompt(1, 900)]
    budget = ChunkBudget(64, 64)
    slots = []
    for _ in range(PASS_LIMIT + 1):
        chunks = choose_chunks(prompts, budget)
        book_chunks(prompts, chunks)
        slots += [chunk.slot for chunk in chunks]
    assert slots == [1] * PASS_LIMIT + [0]


def test_a_forward_without_chunks_passes_nobody_over() -> None:
    waiting = prompt(0, 100)
    book_chunks([waiting], choose_chunks([waiting], OWED))
    assert waiting.times_passed_over == 0


@st.composite
def arrivals(draw: st.DrawFn) -> tuple[ChunkBudget, int, list[tuple[int, bool, bool, bool]]]:
    """A budget, a number of slots, and by turn: a prompt that comes if a slot is free, and whether decode is owed."""
    long_tokens = CELL_TOKENS * draw(st.integers(1, 4))
    budget = ChunkBudget(long_tokens, long_tokens + CELL_TOKENS * draw(st.integers(0, 3)))
    prompts = st.tuples(st.integers(1, 700), st.booleans(), st.booleans(), st.booleans())
    return budget, draw(st.integers(1, 16)), draw(st.lists(prompts, min_size=20, max_size=60))


@given(arrivals())
def test_every_prompt_has_rows_in_one_of_8_plus_slots_forwards_and_no_cell_is_cut(
    case: tuple[ChunkBudget, int, list[tuple[int, bool, bool, bool]]],
) -> None:
    budget, num_slots, coming = case
    slots: dict[int, RunningRequest] = {}
    waits: dict[int, int] = {}
    for num_tokens, is_short, is_background, is_owed in coming:
        for slot in range(num_slots):
            if slot not in slots:
                slots[slot] = prompt(slot, num_tokens, background=is_background, short=is_short)
                waits[slot] = 0
        present = ChunkBudget(budget.long_tokens, budget.forward_tokens, is_owed)
        chunks = choose_chunks(list(slots.values()), present)
        assert sum(chunk.num_scheduled_tokens for chunk in chunks) <= budget.forward_tokens
        for chunk in chunks:
            end = chunk.start + chunk.num_scheduled_tokens
            assert chunk.start == slots[chunk.slot].num_computed_tokens
            assert end % CELL_TOKENS == 0 or end == slots[chunk.slot].request.num_prompt_tokens
        book_chunks(list(slots.values()), chunks)
        served = {chunk.slot for chunk in chunks}
        waits = {slot: 0 if slot in served else waits[slot] + bool(chunks) for slot in slots}
        assert max(waits.values()) < PASS_LIMIT + num_slots
        slots = {slot: running for slot, running in slots.items() if running.is_prefilling}
