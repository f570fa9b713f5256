"""POST /v1/messages and /v1/messages/count_tokens, in Anthropic's shape."""

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from twinspark_gateway.gateway import gateway_of
from twinspark_gateway.routes.conversations import answer_chat, encode_conversation, prepare_chat
from twinspark_gateway.schemas.anthropic.reply import EVENTS, MessagesReply
from twinspark_gateway.schemas.anthropic.request import NAMES, translate_prompt, translate_request

router = APIRouter()


@router.post("/v1/messages")
async def messages(request: Request) -> Response:
    """Answer a conversation, streamed or whole."""
    gateway = gateway_of(request)
    body = await gateway.read_body(request)
    gateway.check_model(body)
    with NAMES.reword():
        prepared = await prepare_chat(request, translate_request(body))
        return await answer_chat(request, prepared, MessagesReply(gateway.settings.served_name), EVENTS)


@router.post("/v1/messages/count_tokens")
async def count_tokens(request: Request) -> Response:
    """Give the number of tokens of the prompt that the same body would run."""
    gateway = gateway_of(request)
    body = await gateway.read_body(request)
    gateway.check_model(body)
    with NAMES.reword():
        prompt = await encode_conversation(request, translate_prompt(body))
    return JSONResponse({"input_tokens": len(prompt)})
