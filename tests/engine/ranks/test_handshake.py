"""Two ranks that differ in one value both refuse, and both log both values."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from support.rank_processes import rank_processes
from support.waiting import PATIENCE_SECONDS
from twinspark.engine.v1.rank_pb2_grpc import add_RankServiceServicer_to_server
from twinspark_engine.errors import RanksDifferError
from twinspark_engine.ranks.follower import Command, Follower, Load
from twinspark_engine.ranks.handshake import AgreedValues, Difference, find_differences, software_hashes
from twinspark_engine.ranks.leader import Leader, LeaderSettings
from twinspark_engine.ranks.link import FollowerLink
from twinspark_engine.ranks.pair_transport import PairTransport
from twinspark_engine.ranks.servicer import RankServicer
from twinspark_engine.ranks.tcp_group import form_tcp_group
from twinspark_engine.ranks.transport import TransportError
from twinspark_engine.settings import Scope, Settings, agreed_values, scope_of
from twinspark_rpc import ChannelSettings, ListenSettings, RpcServer, open_channel

AGREED_FIELDS = [name for name in Settings.model_fields if scope_of(name) is Scope.AGREE]
SETTINGS = Settings(model=Path("m"), world_size=2, rank=1)
VALUES = AgreedValues(agreed_values(SETTINGS), {"checkpoint": "abc", **software_hashes()})


class _Channel(ChannelSettings):
    pass


class _Listen(ListenSettings):
    pass


class RecordingFollower(Follower):
    """Takes commands and never runs them."""

    def __init__(self) -> None:
        self.commands: list[Command] = []

    def post(self, command: Command) -> None:
        self.commands.append(command)


@dataclass
class FollowerSide:
    address: str
    follower: RecordingFollower
    refusals: list[list[Difference]] = field(default_factory=list)


@pytest.fixture
async def follower_side() -> AsyncIterator[FollowerSide]:
    side = FollowerSide("", RecordingFollower())
    server = RpcServer("engine", _Listen(), CollectorRegistry())
    servicer = RankServicer(1, VALUES, side.follower, side.refusals.append)
    server.add(add_RankServiceServicer_to_server, servicer, "twinspark.engine.v1.RankService")
    await server.start()
    side.address = f"127.0.0.1:{server.port}"
    yield side
    await server.stop()


async def form(side: FollowerSide, values: AgreedValues) -> None:
    """Rank 0's handshake; the load that follows it fails, so that no group is formed."""
    channel = open_channel(side.address, _Channel())
    timeout = timedelta(seconds=PATIENCE_SECONDS)
    transport = PairTransport(0, 2, form_tcp_group, bind_host="127.0.0.1", timeout=timeout)
    links = [FollowerLink(1, channel, lambda: None)]
    leader = Leader(LeaderSettings("127.0.0.1", PATIENCE_SECONDS), values, transport, links, asyncio.get_running_loop())

    def load() -> None:
        raise TransportError("agreed")

    try:
        await asyncio.to_thread(leader.form, load)
    finally:
        transport.leave("test")
        await channel.close()


async def test_equal_ranks_agree_and_the_follower_begins_to_load(follower_side: FollowerSide) -> None:
    with pytest.raises(TransportError, match="agreed"):
        await form(follower_side, VALUES)
    assert follower_side.follower.commands == [Load()]
    assert follower_side.refusals == []


@pytest.mark.parametrize("name", AGREED_FIELDS)
async def test_a_differing_setting_stops_both_ranks_and_both_log_both_values(
    follower_side: FollowerSide, name: str
) -> None:
    other = json.dumps({"changed": json.loads(VALUES.settings[name])})
    leader_values = AgreedValues({**VALUES.settings, name: other}, VALUES.hashes)
    with capture_logs() as logs, pytest.raises(RanksDifferError, match=name):
        await form(follower_side, leader_values)
    lines = [line for line in logs if line["event"] == "ranks_differ"]
    assert len(lines) == 2, "one line of each rank"
    for line in lines:
        assert (line["name"], line["leader_value"], line["follower_value"]) == (name, other, VALUES.settings[name])
    assert [[d.name for d in refused] for refused in follower_side.refusals] == [[name]]
    assert follower_side.follower.commands == []


@pytest.mark.parametrize("name", ["checkpoint", "torch", "cpu_capability"])
async def test_a_differing_hash_stops_both_ranks(follower_side: FollowerSide, name: str) -> None:
    with pytest.raises(RanksDifferError, match=name):
        await form(follower_side, AgreedValues(VALUES.settings, {**VALUES.hashes, name: "other"}))
    assert len(follower_side.refusals) == 1


async def test_an_older_epoch_is_refused_and_the_next_attempt_is_newer(follower_side: FollowerSide) -> None:
    channel = open_channel(follower_side.address, _Channel())
    transport = PairTransport(0, 2, form_tcp_group, bind_host="127.0.0.1", timeout=timedelta(seconds=PATIENCE_SECONDS))
    links = [FollowerLink(1, channel, lambda: None)]
    leader = Leader(LeaderSettings("127.0.0.1", PATIENCE_SECONDS), VALUES, transport, links, asyncio.get_running_loop())
    future = 1 << 62

    def load() -> None:
        raise TransportError("agreed")

    leader._epoch = future
    with pytest.raises(TransportError, match="agreed"):
        await asyncio.to_thread(leader.form, load)
    leader._epoch = 0
    with pytest.raises(TransportError, match="newer epoch"):
        await asyncio.to_thread(leader.form, load)
    with pytest.raises(TransportError, match="agreed"):
        await asyncio.to_thread(leader.form, load)
    transport.leave("test")
    await channel.close()


def test_a_setting_that_only_one_rank_has_counts_as_a_difference() -> None:
    left, right = AgreedValues({"a": "1", "new": "2"}, {}), AgreedValues({"a": "1"}, {})
    assert find_differences(left, right) == [Difference("new", "2", "null")]
    assert find_differences(right, left) == [Difference("new", "null", "2")]


@pytest.mark.slow
async def test_two_processes_that_differ_both_exit_with_78(tmp_path: Path) -> None:
    different = [
        {"TWINSPARK_ENGINE_SLOTS": "3", "HASH_CHECKPOINT": "left"},
        {"TWINSPARK_ENGINE_SLOTS": "5", "HASH_CHECKPOINT": "right"},
    ]
    with rank_processes(tmp_path, of_rank=lambda rank: different[rank]) as pair:
        pair.start()
        assert [await asyncio.to_thread(rank.wait) for rank in pair.ranks] == [78, 78]
        for rank in pair.ranks:
            lines = [(x["name"], x["leader_value"], x["follower_value"]) for x in rank.logs("ranks_differ")]
            assert lines == [("slots", "3", "5"), ("checkpoint", "left", "right")]
            assert rank.logs("weights_loading") == []
