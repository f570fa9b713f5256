"""GET /health and GET /metrics, from the last copy of the engine's statistics: they never wait for the engine."""

import time
from typing import Any

from fastapi import APIRouter, Request
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from starlette.responses import JSONResponse, Response

from twinspark_gateway.gateway import Gateway, gateway_of

router = APIRouter()


@router.get("/health")
@router.get("/v1/health")
async def health(request: Request) -> Response:
    """Say whether requests are served: 200, or 503 with the reason."""
    gateway = gateway_of(request)
    problem = gateway.monitor.problem
    status = 200 if problem is None else 503
    if gateway.settings.asks_for_keys:
        return JSONResponse({"status": "ok" if problem is None else "unavailable"}, status)
    return JSONResponse(_describe(gateway, problem), status)


@router.get("/metrics")
@router.get("/v1/metrics")
async def metrics(request: Request) -> Response:
    """Expose metrics in Prometheus' text format."""
    return Response(generate_latest(gateway_of(request).metrics.registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)


def _grammar_state(gateway: Gateway) -> str | None:
    """Say how the grammar service is; None where none is set. Without it other requests are served all the same."""
    if gateway.grammar_monitor is None:
        return None
    return "serving" if gateway.grammar_monitor.is_serving else "unavailable"


def _describe(gateway: Gateway, problem: str | None) -> dict[str, Any]:
    stats, age, model = gateway.monitor.stats, gateway.monitor.age_seconds, gateway.monitor.model
    calls = gateway.engine.calls
    reply: dict[str, Any] = {
        "status": "ok" if problem is None else "unavailable",
        "ok": problem is None,
        "problem": problem,
        "mode": gateway.settings.health_mode,
        "uptime_s": int(time.time()) - gateway.started_at,
        "inflight": int(gateway.metrics.num_inflight),
        "oldest_s": round(calls.oldest_seconds, 3),
        "idle_s": round(calls.idle_seconds, 3),
        "requests": gateway.metrics.num_requests,
        "errors": gateway.metrics.num_failed,
        "stalled": [
            {
                "prompt": stall.num_prompt_tokens,
                "quiet_s": round(stall.quiet_seconds, 3),
                "allowed_s": round(stall.allowed_seconds, 3),
            }
            for stall in calls.find_stalls()
        ],
        "engine": {"state": stats.state if stats is not None else None, "age_s": age and round(age, 3)},
        "grammar": {"state": _grammar_state(gateway)},
    }
    if model is not None:
        reply |= {"model": gateway.settings.served_name, "context_length": model.context_length}
    if stats is not None:
        gauges, counters = stats.gauges, stats.counters
        decoding = gauges["num_running"] - gauges["num_prefilling"]
        reply |= {
            "busy": gauges["num_running"] > 0,
            "requests_running": gauges["num_running"],
            "requests_waiting": gauges["num_waiting"],
            "requests_total": counters["requests_total"],
            "prompt_tokens_total": counters["prompt_tokens_total"],
            "completion_tokens_total": counters["output_tokens_total"],
            "cached_tokens_total": counters["cached_tokens_total"],
            "drafted_total": counters["drafted_tokens_total"],
            "accepted_total": counters["accepted_tokens_total"],
            "steps_total": counters["steps_total"],
            "prefill_seconds_total": counters["prefill_us_total"] / 1e6,
            "decode_seconds_total": counters["decode_us_total"] / 1e6,
            "streams": {"decoding": decoding, "prefilling": gauges["num_prefilling"], "max": gauges["num_slots"]},
        }
    return reply
