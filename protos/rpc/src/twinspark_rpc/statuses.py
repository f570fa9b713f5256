"""Packing a failure into a gRPC status with google.rpc.ErrorInfo, and reading it at the caller's end."""

from dataclasses import dataclass, field

import grpc
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from twinspark_rpc.errors import ServiceError

Trailers = tuple[tuple[str, str | bytes], ...]

INTERNAL_MESSAGE = "internal error; the log of the service has the details under this request id"
_RETRYABLE = "retryable"


@dataclass(frozen=True, slots=True)
class RemoteStatus:
    """A failed call as its caller sees it. `reason` is empty where the server packed no ErrorInfo (connection lost)."""

    code: grpc.StatusCode
    message: str
    reason: str = ""
    domain: str = ""
    retryable: bool = False
    metadata: dict[str, str] = field(default_factory=dict)


def pack_trailers(error: ServiceError, domain: str) -> Trailers:
    """Trailing metadata that carries the ErrorInfo of `error`; `domain` names the service."""
    info = error_details_pb2.ErrorInfo(reason=error.REASON, domain=domain, metadata=error.metadata)
    info.metadata[_RETRYABLE] = "true" if error.RETRYABLE else "false"
    detail = any_pb2.Any()
    detail.Pack(info)
    number: int = error.CODE.value[0]
    status = status_pb2.Status(code=number, message=error.message, details=[detail])
    return tuple(rpc_status.to_status(status).trailing_metadata)


def read_status(error: grpc.aio.AioRpcError) -> RemoteStatus:
    """What the server said about a failed call. Never raises: details that do not parse count as absent."""
    code, message = error.code(), error.details() or ""
    try:
        status = rpc_status.from_call(error)
    except ValueError:  # the details' code is not the call's: made by something in between
        status = None
    for detail in status.details if status is not None else ():
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info):
            metadata = dict(info.metadata)
            retryable = metadata.pop(_RETRYABLE, "") == "true"
            return RemoteStatus(code, message, info.reason, info.domain, retryable, metadata)
    return RemoteStatus(code, message, retryable=code is grpc.StatusCode.UNAVAILABLE)
