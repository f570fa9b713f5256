"""The OpenAPI document says what the code does."""

import importlib
import pkgutil
from collections.abc import Mapping
from typing import Any

import pytest

from twinspark_gateway import routes
from twinspark_gateway.generation import EngineModel, EngineSizes
from twinspark_gateway.openapi import other_apis, request_fields
from twinspark_gateway.openapi.document import build_document
from twinspark_gateway.schemas.anthropic import request as messages_request
from twinspark_gateway.schemas.chat_request import read_chat_request
from twinspark_gateway.schemas.completion_request import read_completion_request
from twinspark_gateway.schemas.responses import request as responses_request
from twinspark_gateway.schemas.sampling_defaults import SamplingDefaults
from twinspark_gateway.schemas.thinking import ThinkingDefaults

MODEL = EngineModel(512, 300, frozenset(), 2, 1, 20, "x", EngineSizes(256, 4, 64, 64, 64))
# Read beside a text only.
IGNORED = {("/tokenize", "add_special_tokens")}
HELLO = [{"role": "user", "content": "hello"}]


class Noted(dict[str, Any]):
    """A body that notes which of its fields are read."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self.names: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        """Read a field."""
        self.names.add(name)
        return super().get(name, default)


def test_every_field_that_is_read_is_documented_and_no_other() -> None:
    chat = Noted({"messages": HELLO})
    read_chat_request(chat, MODEL, SamplingDefaults(), ThinkingDefaults())
    # The model's name is read by the route.
    assert chat.names | {"model"} == set(request_fields.CHAT)
    completion = Noted({"prompt": "a"})
    read_completion_request(completion, MODEL, SamplingDefaults())
    assert completion.names | {"model"} == set(request_fields.COMPLETION)


def test_every_field_of_the_other_apis_is_documented_and_no_other() -> None:
    messages = Noted({"messages": HELLO, "max_tokens": 1})
    messages_request.translate_request(messages)
    assert messages.names | {"model"} == set(other_apis.MESSAGES)
    prompt = Noted({"messages": HELLO})
    messages_request.translate_prompt(prompt)
    assert prompt.names | {"model"} == set(other_apis.MESSAGES_PROMPT)
    responses = Noted({"input": "hello"})
    responses_request.translate_request(responses)
    assert responses.names | {"model"} == set(other_apis.RESPONSES)


def test_every_path_and_method_is_documented_and_no_other() -> None:
    modules = [
        importlib.import_module(f"{routes.__name__}.{info.name}") for info in pkgutil.iter_modules(routes.__path__)
    ]
    served = {
        (method.lower(), route.path.replace(":path}", "}"))
        for module in modules
        if hasattr(module, "router")
        for route in module.router.routes
        for method in route.methods
    }
    paths = build_document("1")["paths"]
    assert {(method, path) for path, item in paths.items() for method in item} == served


@pytest.mark.parametrize(
    "path", ["/v1/chat/completions", "/v1/completions", "/v1/responses", "/tokenize", "/detokenize"]
)
async def test_every_documented_field_refuses_what_it_cannot_be(gateway: Any, path: str) -> None:
    document = (await gateway.client.get("/openapi.json")).json()
    schema = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
    whole: dict[str, Any] = {"input": "a"} if "input" in schema["properties"] else {"prompt": "a", "tokens": [1]}
    if "messages" in schema["properties"]:
        whole = {"messages": HELLO}
    for name in schema["properties"]:
        # No field is a list of such objects.
        response = await gateway.post(path, whole | {name: [{"no": [True]}]})
        assert response.status_code == (200 if (path, name) in IGNORED else 400), (name, response.text)
        if response.status_code == 400:
            assert response.json()["error"]["param"].startswith(name), response.text


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/count_tokens"])
async def test_every_field_of_messages_refuses_what_it_cannot_be(gateway: Any, path: str) -> None:
    document = (await gateway.client.get("/openapi.json")).json()
    schema = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
    for name in schema["properties"]:
        response = await gateway.post(path, {"messages": HELLO, "max_tokens": 5, name: [{"no": [True]}]})
        assert response.status_code == 400, name
        assert name in response.json()["error"]["message"]
