"""POST /tokenize and POST /detokenize, in vLLM's shape. They never wait for the engine."""

import asyncio
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from twinspark_gateway.errors import invalid
from twinspark_gateway.gateway import gateway_of
from twinspark_gateway.routes.conversations import encode_conversation
from twinspark_gateway.schemas.fields import Fields, check_token_ids, refuse

router = APIRouter()


@router.post("/tokenize")
@router.post("/v1/tokenize")
async def tokenize(request: Request) -> Response:
    """Give the ids of a text, or of a conversation: then exactly those that chat runs."""
    gateway = gateway_of(request)
    body = await gateway.read_body(request)
    gateway.check_model(body)
    fields = Fields(body)
    with_strings = fields.boolean("return_token_strs", False)
    ids = await _encode(request, body, fields)
    model = gateway.monitor.model
    return JSONResponse(
        {
            "count": len(ids),
            "max_model_len": model.context_length if model is not None else None,
            "tokens": ids,
            "token_strs": [gateway.names.text(token_id) for token_id in ids] if with_strings else None,
        }
    )


@router.post("/detokenize")
@router.post("/v1/detokenize")
async def detokenize(request: Request) -> Response:
    """Give the text of ids, special tokens included."""
    gateway = gateway_of(request)
    body = await gateway.read_body(request)
    gateway.check_model(body)
    tokens, model = body.get("tokens"), gateway.monitor.model
    if not isinstance(tokens, list):
        raise refuse("tokens", tokens, "a list of token ids")
    ids = check_token_ids("tokens", tokens, model.vocabulary_size if model is not None else None)
    tokenizer = gateway.require_tokenizer("tokens", "token ids have no text")
    return JSONResponse({"prompt": tokenizer.decode(ids)})


async def _encode(request: Request, body: dict[str, Any], fields: Fields) -> list[int]:
    prompt, has_messages = fields.text("prompt"), body.get("messages") is not None
    if (prompt is None) == (not has_messages):
        raise invalid("prompt", "Give exactly one of 'prompt' and 'messages'.", code="invalid_value")
    if prompt is None:
        return await encode_conversation(request, body)
    tokenizer = gateway_of(request).require_tokenizer("prompt", "text has no token ids")
    add_special_tokens = fields.boolean("add_special_tokens", True)
    return await asyncio.to_thread(tokenizer.encode, prompt, add_special_tokens=add_special_tokens)
