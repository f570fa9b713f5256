"""POST /v1/responses; GET and DELETE of stored ones."""

from collections.abc import Callable, Sequence
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from twinspark_gateway.errors import not_served_yet
from twinspark_gateway.gateway import Gateway, gateway_of
from twinspark_gateway.request_record import record_of
from twinspark_gateway.routes.conversations import answer_chat, prepare_chat
from twinspark_gateway.schemas.responses.conversation import Message
from twinspark_gateway.schemas.responses.reply import ResponsesReply, count_bytes
from twinspark_gateway.schemas.responses.request import NAMES, ResponsesRequest, translate_request
from twinspark_gateway.schemas.responses.store import StoredResponse
from twinspark_gateway.web.event_stream import EventForm

router = APIRouter()


@router.post("/v1/responses")
async def responses(request: Request) -> Response:
    """Answer an input, streamed or whole."""
    gateway = gateway_of(request)
    body = await gateway.read_body(request)
    gateway.check_model(body)
    with NAMES.reword():
        asked = translate_request(body)
        earlier, num_earlier_bytes = _find_earlier(gateway, _scope(request), asked)
        prepared = await prepare_chat(request, asked.chat_body(earlier))
        sampling = prepared.chat.params.sampling
        reply = ResponsesReply(
            gateway.settings.served_name,
            {
                **asked.echo,
                "max_output_tokens": prepared.chat.max_tokens,
                "temperature": sampling.temperature,
                "top_p": sampling.top_p,
            },
            _keeper(gateway, _scope(request), asked, [*earlier, *asked.messages], num_earlier_bytes),
        )
        return await answer_chat(request, prepared, reply, EventForm(reply.failed_chunk, is_named=True))


@router.get("/v1/responses/{response_id}")
async def get_response(request: Request, response_id: str) -> Response:
    """Give a stored response."""
    if request.query_params.get("stream", "false") != "false":
        raise not_served_yet("stream", " for a stored response")
    return JSONResponse(gateway_of(request).responses.get(_scope(request), response_id).response)


@router.delete("/v1/responses/{response_id}")
async def delete_response(request: Request, response_id: str) -> Response:
    """Forget a stored response."""
    gateway_of(request).responses.delete(_scope(request), response_id)
    return JSONResponse({"id": response_id, "object": "response", "deleted": True})


def _scope(request: Request) -> str:
    return record_of(request).key_label or ""


def _find_earlier(gateway: Gateway, scope: str, asked: ResponsesRequest) -> tuple[Sequence[Message], int]:
    """Give the messages of the response that the request goes on from, and their bytes."""
    if asked.previous_response_id is None:
        return (), 0
    previous = gateway.responses.get_previous(scope, asked.previous_response_id)
    return previous.messages, previous.num_bytes


def _keeper(
    gateway: Gateway, scope: str, asked: ResponsesRequest, messages: Sequence[Message], num_earlier_bytes: int
) -> Callable[[dict[str, Any], Message], None]:
    def keep(response: dict[str, Any], message: Message) -> None:
        if asked.store:
            num_bytes = num_earlier_bytes + count_bytes(asked.messages, message, response)
            gateway.responses.keep(scope, StoredResponse(response, (*messages, message), num_bytes))

    return keep
