"""What can go wrong with a call to the engine: each class is one reason that a caller sees."""

import grpc

from twinspark_rpc import ServiceError


class InvalidFieldError(ServiceError):
    """A field of the request is out of range."""

    REASON = "INVALID_FIELD"
    CODE = grpc.StatusCode.INVALID_ARGUMENT

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}", field=field)


class UnsupportedFieldError(ServiceError):
    """A field asks for what this engine does not do; it is never ignored."""

    REASON = "UNSUPPORTED_FIELD"
    CODE = grpc.StatusCode.INVALID_ARGUMENT

    def __init__(self, field: str) -> None:
        super().__init__(f"{field}: not supported by this engine", field=field)


class RequestIdInUseError(ServiceError):
    """Another call with this request_id is running."""

    REASON = "REQUEST_ID_IN_USE"
    CODE = grpc.StatusCode.INVALID_ARGUMENT

    def __init__(self) -> None:
        super().__init__("request_id: another call with this id is running", field="request_id")


class ContextTooLongError(ServiceError):
    """Prompt and max_tokens exceed what a slot can hold."""

    REASON = "CONTEXT_TOO_LONG"
    CODE = grpc.StatusCode.OUT_OF_RANGE

    def __init__(self, prompt_tokens: int, max_tokens: int, context_length: int) -> None:
        super().__init__(
            f"{prompt_tokens} prompt tokens and max_tokens {max_tokens} exceed the context of {context_length} tokens",
            prompt_tokens=prompt_tokens,
            max_tokens=max_tokens,
            context_length=context_length,
        )


class QueueFullError(ServiceError):
    """As many requests wait as are allowed to."""

    REASON = "QUEUE_FULL"
    CODE = grpc.StatusCode.RESOURCE_EXHAUSTED
    RETRYABLE = True

    def __init__(self, queue_limit: int) -> None:
        super().__init__(f"{queue_limit} requests wait already", queue_limit=queue_limit)


class EngineLoadingError(ServiceError):
    """The weights are being loaded, or the ranks have not met yet."""

    REASON = "ENGINE_LOADING"
    CODE = grpc.StatusCode.UNAVAILABLE
    RETRYABLE = True

    def __init__(self) -> None:
        super().__init__("the engine is starting")


class EngineDrainingError(ServiceError):
    """The engine stops: running requests end, new ones are refused."""

    REASON = "ENGINE_DRAINING"
    CODE = grpc.StatusCode.UNAVAILABLE
    RETRYABLE = True

    def __init__(self) -> None:
        super().__init__("the engine is stopping")


class RankLostError(ServiceError):
    """A rank is gone or silent; the group forms again by itself."""

    REASON = "RANK_LOST"
    CODE = grpc.StatusCode.UNAVAILABLE
    RETRYABLE = True

    def __init__(self) -> None:
        super().__init__("a rank of the engine is lost; the group is being formed again")


class StaleEpochError(ServiceError):
    """A handshake or stream of a group that a newer one has replaced."""

    REASON = "STALE_EPOCH"
    CODE = grpc.StatusCode.ABORTED

    def __init__(self, epoch: int, newest_epoch: int) -> None:
        super().__init__(
            f"epoch {epoch} is not newer than epoch {newest_epoch}", epoch=epoch, newest_epoch=newest_epoch
        )


class RanksDifferError(ServiceError):
    """Two ranks disagree on a value that changes a shape, a bit or the order of exchanges."""

    REASON = "RANKS_DIFFER"
    CODE = grpc.StatusCode.FAILED_PRECONDITION

    def __init__(self, names: list[str]) -> None:
        super().__init__(f"the ranks differ in: {', '.join(names)}", names=",".join(names))


class FollowRefusedError(ServiceError):
    """Follow did not begin with a StartEpoch of the epoch that was agreed on."""

    REASON = "FOLLOW_REFUSED"
    CODE = grpc.StatusCode.FAILED_PRECONDITION

    def __init__(self) -> None:
        super().__init__("Follow begins with the StartEpoch of the epoch of the newest handshake")
