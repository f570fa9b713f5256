"""The map from gRPC statuses to HTTP errors, and the conversion of messages."""

import json
import math

import grpc
import pytest

from twinspark.engine.v1 import engine_pb2 as pb
from twinspark_gateway.convert import event_from_proto, generation_to_proto
from twinspark_gateway.errors import from_status
from twinspark_gateway.generation import Generation, Step

MAP = {
    "INVALID_ARGUMENT": (400, "invalid_request_error"),
    "OUT_OF_RANGE": (400, "invalid_request_error"),
    "FAILED_PRECONDITION": (400, "invalid_request_error"),
    "UNAUTHENTICATED": (401, "authentication_error"),
    "PERMISSION_DENIED": (403, "permission_error"),
    "NOT_FOUND": (404, "invalid_request_error"),
    "RESOURCE_EXHAUSTED": (503, "server_error"),
    "CANCELLED": (499, "invalid_request_error"),
    "UNAVAILABLE": (503, "server_error"),
    "DEADLINE_EXCEEDED": (504, "server_error"),
}


@pytest.mark.parametrize("code", [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK])
def test_every_status_has_its_http_error(code: grpc.StatusCode) -> None:
    error = from_status(code, "the details", "field")
    assert (error.status, error.type) == MAP.get(code.name, (500, "server_error"))
    describes_the_request = error.status in (400, 404)
    assert ("the details" in error.message) == describes_the_request
    assert set(error.body()["error"]) == {"message", "type", "param", "code"}


@pytest.mark.parametrize("code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED])
def test_clients_are_told_to_retry_only_where_a_retry_can_succeed(code: grpc.StatusCode) -> None:
    assert dict(from_status(code, "x", retryable=True).headers) == {"Retry-After": "1"}
    assert dict(from_status(code, "x", retryable=False).headers) == {"x-should-retry": "false"}


def test_a_context_overflow_of_the_engine_has_the_code_that_clients_know() -> None:
    assert from_status(grpc.StatusCode.OUT_OF_RANGE, "x").code == "context_length_exceeded"


def test_log_probabilities_are_always_json() -> None:
    entry = pb.TokenLogprobs(logprob=-math.inf, top_token_ids=[1], top_logprobs=[-math.inf])
    event = event_from_proto(pb.GenerateResponse(step=pb.Step(token_ids=[1], logprobs=[entry])))
    assert isinstance(event, Step)
    values = [event.logprobs[0].logprob, event.logprobs[0].top[0][1]]
    assert json.dumps(values, allow_nan=False) == "[-9999.0, -9999.0]"


def test_log_probabilities_without_alternatives_are_asked_for() -> None:
    request = generation_to_proto(Generation("r", [1], 1, num_top_logprobs=0, num_top_prompt_logprobs=0))
    assert request.HasField("logprobs")
    assert request.HasField("prompt_logprobs")
    bare = generation_to_proto(Generation("r", [1], 1))
    assert not bare.HasField("logprobs")
    assert not bare.HasField("prompt_logprobs")
    assert not bare.sampling.HasField("seed")


def test_an_event_of_a_newer_engine_is_passed_over() -> None:
    assert event_from_proto(pb.GenerateResponse()) is None
