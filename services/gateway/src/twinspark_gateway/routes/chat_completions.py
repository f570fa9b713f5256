"""POST /v1/chat/completions."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from twinspark_gateway.gateway import Gateway, gateway_of
from twinspark_gateway.routes.conversations import PreparedChat, answer_chat, prepare_chat
from twinspark_gateway.routes.generations import build_head
from twinspark_gateway.schemas.chat_reply import ChatReply

router = APIRouter()
_REASONING_FIELDS = {"both": ("reasoning_content", "reasoning")}


@router.post("/v1/chat/completions")
@router.post("/chat/completions")
async def chat_completions(request: Request) -> Response:
    """Answer a conversation, streamed or whole."""
    gateway = gateway_of(request)
    body = await gateway.read_body(request)
    gateway.check_model(body)
    prepared = await prepare_chat(request, body)
    return await answer_chat(request, prepared, _build_reply(gateway, prepared))


def _build_reply(gateway: Gateway, prepared: PreparedChat) -> ChatReply:
    chat = prepared.chat
    name = gateway.settings.reasoning_field
    return ChatReply(
        head=build_head(gateway, prepared.model, "chatcmpl"),
        names=gateway.names,
        reasoning_fields=_REASONING_FIELDS.get(name, (name,)) if chat.include_reasoning else (),
        with_logprobs=chat.num_top_logprobs is not None,
        with_token_ids=chat.params.return_token_ids,
        with_usage=chat.params.continuous_usage,
        num_choices=len(prepared.choices),
        include_usage=chat.params.include_usage,
        restored_turns=prepared.record.restored_turns or 0,
    )
