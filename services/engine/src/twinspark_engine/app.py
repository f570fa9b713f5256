"""Composition root: constructs the objects of a rank and connects them. Imported by __main__ only."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any

from prometheus_client import CollectorRegistry

from twinspark.engine.v1.engine_pb2_grpc import add_EngineServiceServicer_to_server
from twinspark.engine.v1.rank_pb2_grpc import add_RankServiceServicer_to_server
from twinspark_engine.checkpoint import Checkpoint, agreed_hashes, build_fingerprint
from twinspark_engine.convert import RequestBounds
from twinspark_engine.errors import RankLostError
from twinspark_engine.kv_cache.block_reservations import BLOCK_TOKENS
from twinspark_engine.kv_cache.memory_rule import AdmissionRule
from twinspark_engine.loop import EngineLoop, Stop, Wake
from twinspark_engine.masks.client import GrammarClient
from twinspark_engine.masks.source import NO_MASKS, MaskAccess
from twinspark_engine.metrics import StatsCollector
from twinspark_engine.ranks.follower import Follower, StopFollower
from twinspark_engine.ranks.gloo_group import form_gloo_group
from twinspark_engine.ranks.group import Group, SoloGroup
from twinspark_engine.ranks.handshake import AgreedValues, software_hashes
from twinspark_engine.ranks.leader import Leader, LeaderSettings
from twinspark_engine.ranks.link import FollowerLink
from twinspark_engine.ranks.pair_group import FormGroup
from twinspark_engine.ranks.pair_transport import PairTransport
from twinspark_engine.ranks.servicer import RankServicer
from twinspark_engine.ranks.tcp_group import form_tcp_group
from twinspark_engine.ranks.transport import LocalTransport, Transport
from twinspark_engine.scheduler.limits import SchedulerLimits
from twinspark_engine.scheduler.scheduler import Scheduler
from twinspark_engine.servicer import EngineDescription, EngineServicer
from twinspark_engine.settings import Settings, agreed_values, mask_timeout_seconds
from twinspark_engine.step_thread import StepThread, log_thread_failure
from twinspark_engine.streams import EventLoopListener, RequestStreams
from twinspark_rpc import AddressTakenError, RpcServer, open_channel

FORM_GROUP: dict[str, FormGroup] = {"tcp": form_tcp_group, "gloo": form_gloo_group}
"""By the setting `transport`."""
MIB = 2**20
STOP_SECONDS = 2.0
"""Given to what should end at once, before the process ends without it."""


async def serve(settings: Settings, checkpoint: Checkpoint) -> int:
    """Run this rank until a signal or a failure; returns the exit code. Raises AddressTakenError."""
    threading.excepthook = log_thread_failure
    values = AgreedValues(agreed_values(settings), agreed_hashes(checkpoint) | software_hashes())
    if settings.rank == 0:
        return await _serve_leader(settings, checkpoint, values)
    return await _serve_follower(settings, checkpoint, values)


async def _serve_leader(settings: Settings, checkpoint: Checkpoint, values: AgreedValues) -> int:
    registry, streams = CollectorRegistry(), RequestStreams()
    server = RpcServer("engine", settings, registry)
    listener = EventLoopListener(streams, server.set_serving)

    def on_lost() -> None:
        listener.on_link_lost()
        loop.post(Wake())

    group, transport = _build_group(settings, values, on_lost)
    admission = AdmissionRule(settings.memory_admit_mib * MIB, checkpoint.scratch_bytes)
    scheduler = Scheduler(_scheduler_limits(settings, checkpoint), admission)
    client = _open_grammar(settings, checkpoint)
    masks = _mask_access(settings, client)
    loop = EngineLoop(scheduler, group, lambda: checkpoint.load(transport, masks), listener, time.monotonic)
    bounds = RequestBounds(
        vocabulary_size=checkpoint.vocabulary_size,
        max_top_logprobs=settings.max_top_logprobs,
        seed_salt=settings.seed_salt,
        eos_token_ids=frozenset(checkpoint.eos_token_ids),
        masked_token_ids=checkpoint.masked_token_ids,
        has_grammar_service=client is not None,
    )
    servicer = EngineServicer(loop, streams, listener, _describe(settings, checkpoint, values), bounds)
    registry.register(StatsCollector(loop.stats))
    server.add(add_EngineServiceServicer_to_server, servicer, "twinspark.engine.v1.EngineService")
    try:
        return await _run_to_end(server, StepThread(loop.run), servicer.drain, lambda: loop.post(Stop()))
    finally:
        streams.fail_all(RankLostError())
        if client is not None:
            await client.close()


async def _serve_follower(settings: Settings, checkpoint: Checkpoint, values: AgreedValues) -> int:
    event_loop = asyncio.get_running_loop()
    server = RpcServer("engine", _with_exchange_timeout(settings), CollectorRegistry())

    def on_joined(is_joined: bool) -> None:
        asyncio.run_coroutine_threadsafe(server.set_serving(is_joined), event_loop)

    transport = _build_transport(settings)
    client = _open_grammar(settings, checkpoint)
    masks = _mask_access(settings, client)
    follower = Follower(transport, lambda: checkpoint.load(transport, masks), on_joined)
    thread = StepThread(follower.run)
    servicer = RankServicer(settings.rank, values, follower, lambda _differences: thread.refuse())
    server.add(add_RankServiceServicer_to_server, servicer, "twinspark.engine.v1.RankService")
    # No drain of its own: the stop of the server waits for Follow, which ends when rank 0 has drained.
    try:
        return await _run_to_end(server, thread, None, lambda: follower.post(StopFollower()))
    finally:
        if client is not None:
            await client.close()


async def _run_to_end(
    server: RpcServer, thread: StepThread, drain: Callable[[], Awaitable[None]] | None, stop: Callable[[], None]
) -> int:
    """Serve until a signal, then drain and stop the thread; or until the thread ends by itself, then stop at once."""
    signalled = asyncio.ensure_future(server.run_until_signal(drain))
    await asyncio.sleep(0)  # signals are handled from here on, before anybody can know that this process listens
    try:
        await server.start()
    except AddressTakenError:
        signalled.cancel()
        raise
    thread.start()
    either: set[asyncio.Future[Any]] = {signalled, thread.ended}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    if signalled.done():
        signalled.result()
        stop()
        await asyncio.wait({thread.ended}, timeout=STOP_SECONDS)
        return thread.ended.result() if thread.ended.done() else 0
    signalled.cancel()
    await asyncio.wait({asyncio.ensure_future(server.stop())}, timeout=STOP_SECONDS)
    return thread.ended.result()


def _build_group(settings: Settings, values: AgreedValues, on_lost: Callable[[], None]) -> tuple[Group, Transport]:
    if settings.world_size == 1:
        return SoloGroup(), LocalTransport()
    channel_settings = _with_exchange_timeout(settings)
    links: Sequence[FollowerLink] = [
        FollowerLink(rank, open_channel(address, channel_settings, max_backoff_seconds=0.5), on_lost)
        for rank, address in enumerate(settings.peers, start=1)
    ]
    transport = _build_transport(settings)
    leader_settings = LeaderSettings(settings.group_host, settings.exchange_timeout_ms / 1000)
    return Leader(leader_settings, values, transport, links, asyncio.get_running_loop()), transport


def _open_grammar(settings: Settings, checkpoint: Checkpoint) -> GrammarClient | None:
    if not settings.grammar:
        return None
    channel = open_channel(settings.grammar, settings, max_backoff_seconds=0.5)
    return GrammarClient(channel, checkpoint.vocabulary_size)


def _mask_access(settings: Settings, client: GrammarClient | None) -> MaskAccess:
    return NO_MASKS if client is None else MaskAccess(client, mask_timeout_seconds(settings))


def _build_transport(settings: Settings) -> PairTransport:
    timeout = timedelta(milliseconds=settings.exchange_timeout_ms)
    form_group = FORM_GROUP[settings.transport]
    return PairTransport(settings.rank, settings.world_size, form_group, bind_host=settings.group_host, timeout=timeout)


def _with_exchange_timeout(settings: Settings) -> Settings:
    """Connections between ranks give up a silent peer when an exchange would."""
    return settings.model_copy(update={"keepalive_timeout_seconds": settings.exchange_timeout_ms / 1000})


def _scheduler_limits(settings: Settings, checkpoint: Checkpoint) -> SchedulerLimits:
    return SchedulerLimits(
        num_slots=settings.slots,
        context_tokens=checkpoint.context_tokens,
        chunk_tokens_beside_decoders=settings.chunk_tokens_beside_decoders,
        chunk_tokens_alone=settings.chunk_tokens_alone,
        queue_limit=settings.queue_limit,
        num_blocks=checkpoint.num_blocks,
        short_prompt_tokens=settings.short_prompt_tokens,
        decode_share=settings.decode_share,
        arrival_wait_seconds=settings.arrival_wait_ms / 1000,
    )


def _describe(settings: Settings, checkpoint: Checkpoint, values: AgreedValues) -> EngineDescription:
    return EngineDescription(
        context_length=checkpoint.context_tokens,
        vocabulary_size=checkpoint.vocabulary_size,
        eos_token_ids=checkpoint.eos_token_ids,
        num_slots=settings.slots,
        world_size=settings.world_size,
        fingerprint=build_fingerprint(settings, values.hashes),
        checkpoint_hash=checkpoint.checkpoint_hash,
        max_top_logprobs=settings.max_top_logprobs,
        block_tokens=BLOCK_TOKENS,
        pool_tokens=checkpoint.pool_tokens,
        chunk_tokens_alone=settings.chunk_tokens_alone,
        chunk_tokens_beside_decoders=settings.chunk_tokens_beside_decoders,
        short_prompt_tokens=settings.short_prompt_tokens,
    )
