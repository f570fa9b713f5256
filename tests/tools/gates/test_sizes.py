"""What the gates send fits the server, whatever its sizes."""

import pytest

from twinspark_tools.gates import background, batchexact, boundaries, cancel, crowd, transcripts
from twinspark_tools.gates.chunkexact import partner_lengths
from twinspark_tools.gates.prompts import draw_prompt
from twinspark_tools.gates.server import ServerInfo

SERVED = ServerInfo("m", "f", 32768, 2048, 20, 4, 256, 4, 4096, 2048, 1024)
SMALL = ServerInfo("m", "f", 480, 300, 0, 2, 256, 4, 4096, 2048, 1024)


def test_boundaries_are_met_on_both_sides_of_pools_cells_blocks_and_chunks() -> None:
    lengths = boundaries.boundary_lengths(SERVED)
    assert lengths == sorted(set(lengths))
    for boundary in (4, 20, 64, 256, 2048, 4096):
        assert {boundary - 1, boundary, boundary + 1} <= set(lengths)


@pytest.mark.parametrize("info", [SERVED, SMALL], ids=["served", "small"])
def test_prompt_and_output_of_every_request_fit_the_window_and_the_vocabulary(info: ServerInfo) -> None:
    staying, *leaving = cancel.build_asks(info)
    asks = [*batchexact.build_asks(info, 12), *transcripts.build_asks(info).values(), *staying, *leaving]
    yielding, others = background.build_asks(info)
    asks += [yielding, *others]
    asks += [visit.ask for visit in crowd.build_crowd(info)]
    assert all(len(ask.prompt) > 0 and len(ask.prompt) + ask.max_tokens <= info.context_length for ask in asks)
    assert all(0 <= token_id < info.vocabulary_size for ask in asks for token_id in ask.prompt)
    assert max(boundaries.boundary_lengths(info)) + boundaries.MAX_TOKENS <= info.context_length


def test_every_kind_of_sampling_is_sent_with_several_lengths() -> None:
    asks = batchexact.build_asks(SERVED, 12)
    assert {str(ask.sampling) for ask in asks} == {str(sampling) for sampling in batchexact.SAMPLINGS}
    assert len({len(ask.prompt) for ask in asks}) == 12
    assert len({ask.max_tokens for ask in asks}) == 4


def test_the_load_is_64_requests_of_mixed_length_of_which_some_leave_early_and_some_before_their_turn() -> None:
    visits = crowd.build_crowd(SERVED)
    lengths = {len(visit.ask.prompt) for visit in visits}
    outputs = {visit.ask.max_tokens for visit in visits if visit.num_events is None}
    assert (len(visits), min(lengths), max(lengths), min(outputs), max(outputs)) == (64, 1, 300, 1, 32)
    assert min(len(lengths), len(outputs)) > 15
    leaving = [visit for visit in visits if visit.num_events is not None]
    num_waiting = sum(visit.num_events == 0 for visit in leaving)
    assert min(num_waiting, len(leaving) - num_waiting) >= 6
    assert visits[-num_waiting:] == [visit for visit in leaving if visit.num_events == 0], "they arrive last"
    assert all((visit.num_events or 0) < visit.ask.max_tokens for visit in leaving), "none is left at its end"
    assert crowd.build_crowd(SERVED) == visits


def test_a_partner_is_shorter_than_the_long_prompt_and_leaves_room_in_its_chunk() -> None:
    assert partner_lengths(SERVED, 6181) == {"a short prompt": 64, "a long prompt": 1088}
    assert partner_lengths(SERVED, 1000) == {"a short prompt": 64}


def test_a_longer_prompt_of_one_name_begins_with_the_shorter() -> None:
    assert draw_prompt(SERVED, "x", 50)[:20] == draw_prompt(SERVED, "x", 20)
    assert draw_prompt(SERVED, "x", 20) != draw_prompt(SERVED, "y", 20)
