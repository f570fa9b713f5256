"""Every refusal of the HTTP API: its status, type, code and wording, and the map from gRPC statuses.

Messages never hold a path, an address, a key or a stack trace.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import grpc

INVALID_REQUEST = "invalid_request_error"
SERVER_ERROR = "server_error"
# The client closes the connection before the reply is complete; used in the log and in metrics only.
CLIENT_GONE = 499
# A retry cannot succeed; without it, clients retry every 5xx.
NO_RETRY = {"x-should-retry": "false"}
# Paths below which errors have Anthropic's shape, and its types by status.
_ANTHROPIC_PATH = "/v1/messages"
_ANTHROPIC_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    503: "overloaded_error",
    504: "timeout_error",
}
# Seconds. A group of ranks that lost one needs a few to form again, and clients wait longer from try to try.
RETRY = {"Retry-After": "1"}


@dataclass
class ApiError(Exception):
    """A refusal or failure in OpenAI's shape; any code of a route may raise it before the first byte of a reply."""

    status: int
    message: str
    type: str = INVALID_REQUEST
    param: str | None = None
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def body(self) -> dict[str, Any]:
        """Give the JSON body: {"error": {"message", "type", "param", "code"}}."""
        error = {"message": self.message, "type": self.type, "param": self.param, "code": self.code}
        return {"error": error}


def anthropic_body(error: ApiError) -> dict[str, Any]:
    """Give the JSON body of an error in Anthropic's shape: {"type": "error", "error": {"type", "message"}}."""
    kind = _ANTHROPIC_TYPES.get(error.status, "api_error" if error.status >= 500 else "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": error.message}}


def body_for(path: str, error: ApiError) -> dict[str, Any]:
    """Give the JSON body of an error in the shape of the API that the request's path belongs to."""
    is_anthropic = path == _ANTHROPIC_PATH or path.startswith(f"{_ANTHROPIC_PATH}/")
    return anthropic_body(error) if is_anthropic else error.body()


def invalid(param: str | None, message: str, code: str | None = None) -> ApiError:
    """Build a 400 about one field of the request."""
    return ApiError(400, message, param=param, code=code)


def not_served_yet(param: str, hint: str = "") -> ApiError:
    """Build the 400 for a field of the API that this server cannot honour."""
    return invalid(param, f"'{param}' is not supported by this server{hint}.", code="unsupported_parameter")


def unknown_model(name: str) -> ApiError:
    """Build the 404 for a model that is not served."""
    return ApiError(404, f"The model '{name[:200]}' does not exist.", param="model", code="model_not_found")


def context_overflow(param: str, context_length: int, prompt_tokens: int, max_tokens: int | None) -> ApiError:
    """Build the 400 of a request that exceeds the context; clients parse this wording, so it is verbatim.

    max_tokens is None where the caller gave no limit and the prompt alone is too long.
    """
    message = f"This model's maximum context length is {context_length} tokens. However, "
    part, whole = ("messages", "completion") if param == "messages" else ("prompt", "completion")
    if max_tokens is None:
        message += f"your prompt resulted in {prompt_tokens} tokens. Please reduce the length of the messages."
    else:
        message += (
            f"you requested {prompt_tokens + max_tokens} tokens ({prompt_tokens} in the {part}, {max_tokens} in the "
            f"{whole}). Please reduce the length of the messages or {whole}."
        )
    return invalid(param, message, code="context_length_exceeded")


def missing_key() -> ApiError:
    """Build the 401 of a request without a valid API key."""
    return ApiError(
        401,
        "Missing or incorrect API key.",
        type="authentication_error",
        code="invalid_api_key",
        headers={"WWW-Authenticate": "Bearer"},
    )


def engine_unavailable(why: str) -> ApiError:
    """Build the 503 for an engine that takes no requests: it starts, stops, forms its group, or is not reached."""
    return ApiError(503, f"The engine takes no requests now: {why}.", type=SERVER_ERROR, headers=dict(RETRY))


def grammar_unavailable(why: str, *, retryable: bool = True) -> ApiError:
    """Build the 503 of a request that needs the grammar service, which does not serve it now."""
    headers = dict(RETRY if retryable else NO_RETRY)
    message = f"Structured output and forced tool calls are not available now: {why}."
    return ApiError(503, message, type=SERVER_ERROR, headers=headers)


def internal_failure() -> ApiError:
    """Build the 500 that hides what went wrong; the log has it, under the request's id."""
    return ApiError(500, "The server failed to process the request.", type=SERVER_ERROR)


def from_status(
    code: grpc.StatusCode, details: str | None, param: str | None = None, *, retryable: bool = False
) -> ApiError:
    """Map a gRPC status of the engine to an HTTP error. Details are passed on only where they describe the request.

    retryable: whether the engine's reason says that the same call may succeed later.
    """
    headers = dict(RETRY if retryable else NO_RETRY)
    text = details or "The request was refused by the engine."
    match code:
        case grpc.StatusCode.INVALID_ARGUMENT | grpc.StatusCode.FAILED_PRECONDITION:
            return ApiError(400, text, param=param)
        case grpc.StatusCode.OUT_OF_RANGE:
            return ApiError(400, text, code="context_length_exceeded")
        case grpc.StatusCode.UNAUTHENTICATED:
            return missing_key()
        case grpc.StatusCode.PERMISSION_DENIED:
            return ApiError(403, "The request is not permitted.", type="permission_error")
        case grpc.StatusCode.NOT_FOUND:
            return ApiError(404, text)
        case grpc.StatusCode.RESOURCE_EXHAUSTED:
            return ApiError(503, "The server's queue is full.", type=SERVER_ERROR, headers=dict(RETRY))
        case grpc.StatusCode.UNAVAILABLE:
            return ApiError(503, "The engine is not available.", type=SERVER_ERROR, headers=headers)
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return ApiError(504, "The engine did not answer in time.", type=SERVER_ERROR, headers=headers)
        case grpc.StatusCode.CANCELLED:
            return ApiError(CLIENT_GONE, "The request was cancelled.")
        case _:
            return internal_failure()
