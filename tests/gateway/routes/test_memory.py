"""GET /memory: every rank's account in bytes, its parts' sum beside what the machine says."""

from typing import Any

from fakes.engine import FakeEngine
from twinspark.engine.v1 import engine_pb2 as pb


async def test_memory_shows_device_parts_blocks_host_and_what_admission_counts_with(gateway: Any) -> None:
    for path in ("/memory", "/v1/memory"):
        response = await gateway.client.get(path)
        assert response.status_code == 200
        assert response.json() == {
            "object": "memory",
            "ranks": [
                {
                    "rank": 0,
                    "device": {
                        "source": "available",
                        "total": 4000,
                        "free": 2000,
                        "used_by_process": 1000,
                        "peak_bytes": 1500,
                    },
                    "parts": {
                        "kv": 200,
                        "state": 100,
                        "weights": 300,
                        "kv_pool": {"blocks": 8, "block_tokens": 256, "block_bytes": 20, "used": 0, "free": 8},
                    },
                    "parts_total": 600,
                    "host": {"rss": 1000, "available": 2000, "open_descriptors": 12},
                    "admission": {"slot_bytes": 10, "reserve_bytes": 50, "admit_bytes": 5},
                }
            ],
        }


async def test_an_account_without_blocks_shows_none(start_gateway: Any) -> None:
    class Bare(FakeEngine):
        async def GetMemory(self, request: pb.GetMemoryRequest, context: Any) -> pb.GetMemoryResponse:
            return pb.GetMemoryResponse(ranks=[pb.RankMemory(rank=1, total_bytes=9)])

    gateway = await start_gateway(Bare())
    (rank,) = (await gateway.client.get("/memory")).json()["ranks"]
    assert rank["rank"] == 1
    assert rank["parts"] == {}
    assert rank["admission"] is None


async def test_without_a_serving_engine_memory_is_a_503(start_gateway: Any) -> None:
    gateway = await start_gateway()
    gateway.engine.state = pb.ENGINE_STATE_FORMING
    while (response := await gateway.client.get("/memory")).status_code == 200:
        pass
    assert response.status_code == 503
    assert response.json()["error"]["type"] == "server_error"
