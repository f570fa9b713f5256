"""GET /memory: the account of every rank, asked of the engine at once. Bytes everywhere."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from twinspark_gateway.gateway import gateway_of
from twinspark_gateway.generation import RankMemory

router = APIRouter()


@router.get("/memory")
@router.get("/v1/memory")
async def memory(request: Request) -> Response:
    """Account for memory by rank; a 503 while the engine takes no requests."""
    gateway = gateway_of(request)
    gateway.monitor.serving_model()
    ranks = await gateway.engine.get_memory()
    return JSONResponse({"object": "memory", "ranks": [_describe(rank) for rank in ranks]})


def _describe(rank: RankMemory) -> dict[str, Any]:
    parts: dict[str, Any] = dict(rank.parts)
    if rank.kv_pool is not None:
        pool = rank.kv_pool
        parts["kv_pool"] = {
            "blocks": pool.num_blocks,
            "block_tokens": pool.block_tokens,
            "block_bytes": pool.block_bytes,
            "used": pool.num_used_blocks,
            "free": pool.num_blocks - pool.num_used_blocks,
        }
    admission = None
    if rank.budget is not None:
        budget = rank.budget
        admission = {
            "slot_bytes": budget.slot_bytes,
            "reserve_bytes": budget.reserve_bytes,
            "admit_bytes": budget.admit_bytes,
        }
    return {
        "rank": rank.rank,
        "device": {
            "source": rank.source,
            "total": rank.total_bytes,
            "free": rank.free_bytes,
            "used_by_process": rank.resident_bytes,
            "peak_bytes": rank.peak_resident_bytes,
        },
        "parts": parts,
        "parts_total": sum(rank.parts.values()),
        "host": {
            "rss": rank.resident_bytes,
            "available": rank.available_bytes,
            "open_descriptors": rank.num_open_descriptors,
        },
        "admission": admission,
    }
