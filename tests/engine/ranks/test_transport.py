"""The exchange: rank order, the local group, and the group of threads that other tests use."""

import pytest
import torch
from torch import Tensor

from support.thread_transport import run_ranks
from twinspark_engine.ranks.transport import LocalTransport, Transport, TransportError, sum_in_rank_order


def test_parts_are_added_rank_zero_first() -> None:
    # In fp32 1e8 + 1 is 1e8: any other order gives 1.
    parts = torch.tensor([[1.0], [1e8], [-1e8]])
    assert sum_in_rank_order(parts).item() == 0.0


def test_a_local_group_returns_its_own_part() -> None:
    x = torch.randn(3, 5)
    assert torch.equal(LocalTransport().gather(x), x[None])
    assert torch.equal(sum_in_rank_order(LocalTransport().gather(x)), x)


@pytest.mark.parametrize("world_size", [2, 3])
def test_thread_ranks_receive_all_parts_in_rank_order(world_size: int) -> None:
    def work(transport: Transport) -> Tensor:
        results = [transport.gather(torch.full((2,), float(step * 10 + transport.rank))) for step in range(50)]
        transport.check()
        return torch.stack(results)

    expected = torch.stack(
        [torch.stack([torch.full((2,), float(s * 10 + r)) for r in range(world_size)]) for s in range(50)]
    )
    for found in run_ranks(world_size, work):
        assert torch.equal(found, expected)


def test_a_failing_thread_rank_poisons_the_group_and_its_error_is_raised() -> None:
    poisoned = []

    def work(transport: Transport) -> None:
        if transport.rank == 1:
            raise ZeroDivisionError
        with pytest.raises(TransportError):
            transport.gather(torch.zeros(1))
        with pytest.raises(TransportError):
            transport.check()
        poisoned.append(transport.rank)

    with pytest.raises(ZeroDivisionError):
        run_ranks(2, work)
    assert poisoned == [0]


def test_thread_ranks_refuse_parts_of_different_shape() -> None:
    with pytest.raises(TransportError):
        run_ranks(2, lambda transport: transport.gather(torch.zeros(1 + transport.rank)))
