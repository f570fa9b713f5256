"""GET /v1/models and GET /v1/models/{id}."""

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from twinspark_gateway.errors import unknown_model
from twinspark_gateway.gateway import Gateway, gateway_of
from twinspark_gateway.generation import EngineModel

router = APIRouter()


@router.get("/v1/models")
@router.get("/models")
async def list_models(request: Request) -> Response:
    """List the one served model."""
    return JSONResponse({"object": "list", "data": [_describe(gateway_of(request))]})


@router.get("/v1/models/{name:path}")
@router.get("/models/{name:path}")
async def get_model(request: Request) -> Response:
    """Describe a model by its name or an alias."""
    gateway, name = gateway_of(request), str(request.path_params["name"])
    if not gateway.serves(name):
        raise unknown_model(name)
    return JSONResponse(_describe(gateway))


def _describe(gateway: Gateway) -> dict[str, Any]:
    model, defaults, name = gateway.monitor.model, gateway.defaults, gateway.settings.served_name
    context_length = model.context_length if model is not None else None
    return {
        "id": name,
        "object": "model",
        "created": gateway.started_at,
        "owned_by": "twinspark",
        "root": name,
        "parent": None,
        "max_model_len": context_length,
        "context_length": context_length,
        "aliases": list(gateway.settings.model_aliases),
        "engine": _describe_engine(model),
        "system_fingerprint": model.fingerprint if model is not None else None,
        "sampling_defaults": {
            "temperature": defaults.temperature,
            "top_p": defaults.top_p,
            "top_k": defaults.top_k,
            "min_p": defaults.min_p,
            "repetition_penalty": defaults.repetition_penalty,
        },
    }


def _describe_engine(model: EngineModel | None) -> dict[str, int] | None:
    """Sizes that no reply depends on, for tools that test just this; None until the engine was reached."""
    if model is None:
        return None
    return {
        "slots": model.num_slots,
        "vocabulary_size": model.vocabulary_size,
        "max_top_logprobs": model.max_top_logprobs,
        **asdict(model.sizes),
    }
