"""Gauges at /metrics that show what a gateway or its engine does not give back."""

import asyncio
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from fakes.engine import FakeEngine
from twinspark.engine.v1 import engine_pb2 as pb


async def test_metrics_show_the_tasks_of_the_gateway_and_the_tasks_and_blocks_of_the_engine(
    start_gateway: Any,
) -> None:
    class Blocks(FakeEngine):
        async def GetStats(self, request: Any, context: Any) -> pb.GetStatsResponse:
            return pb.GetStatsResponse(num_blocks=8, num_blocks_used=5, num_asyncio_tasks=7)

    gateway = await start_gateway(Blocks())
    before = await read_metrics(gateway)
    assert before["twinspark_gateway_engine_used_kv_blocks"] == 5
    assert before["twinspark_gateway_engine_asyncio_tasks"] == 7
    # Gateway, engine and test share one event loop here; a poll of the engine may come and go.
    leaked = [asyncio.create_task(asyncio.Event().wait()) for _ in range(100)]
    tasks = "twinspark_gateway_asyncio_tasks"
    assert (await read_metrics(gateway))[tasks] > before[tasks] + 50
    for task in leaked:
        task.cancel()
    await asyncio.gather(*leaked, return_exceptions=True)
    assert (await read_metrics(gateway))[tasks] < before[tasks] + 50


async def read_metrics(gateway: Any) -> dict[str, float]:
    """Give the value of every metric without labels."""
    families = text_string_to_metric_families((await gateway.client.get("/metrics")).text)
    return {sample.name: sample.value for family in families for sample in family.samples if not sample.labels}
