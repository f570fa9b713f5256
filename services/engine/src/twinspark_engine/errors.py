"""What can go wrong with a call to the engine: each class is one reason that a caller sees."""

import grpc

from twinspark_engine.request import ConstraintFailure
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


class GrammarUnavailableError(ServiceError):
    """A request asks for a grammar, and this engine has no grammar service."""

    REASON = "GRAMMAR_UNAVAILABLE"
    CODE = grpc.StatusCode.UNAVAILABLE

    def __init__(self) -> None:
        super().__init__("grammar: the engine has no grammar service")


class GrammarLostError(ServiceError):
    """A rank cannot reach its grammar service, or lost it in mid-request; it comes back by itself."""

    REASON = "GRAMMAR_LOST"
    CODE = grpc.StatusCode.UNAVAILABLE
    RETRYABLE = True

    def __init__(self) -> None:
        super().__init__("the grammar service was lost")


class GrammarSlowError(ServiceError):
    """The grammar service had no mask in time, or is too busy to compile."""

    REASON = "GRAMMAR_SLOW"
    CODE = grpc.StatusCode.UNAVAILABLE
    RETRYABLE = True

    def __init__(self) -> None:
        super().__init__("the grammar service did not answer in time")


class GrammarStuckError(ServiceError):
    """The grammar leads to where no token is allowed that may be drawn, or refuses one that was drawn."""

    REASON = "GRAMMAR_STUCK"
    CODE = grpc.StatusCode.INVALID_ARGUMENT

    def __init__(self) -> None:
        super().__init__("grammar: it allows no token after the output so far", field="grammar")


class GrammarRefusedError(ServiceError):
    """The grammar does not compile, its handle is another grammar's, or an id that ends the output does not fit it."""

    REASON = "GRAMMAR_REFUSED"
    CODE = grpc.StatusCode.INVALID_ARGUMENT

    def __init__(self) -> None:
        super().__init__("grammar: the grammar service refuses it", field="grammar")


def constraint_error(failure: ConstraintFailure) -> ServiceError:
    """The status with which a request ends."""
    match failure:
        case ConstraintFailure.SLOW:
            return GrammarSlowError()
        case ConstraintFailure.LOST:
            return GrammarLostError()
        case ConstraintFailure.STUCK:
            return GrammarStuckError()
        case ConstraintFailure.REFUSED:
            return GrammarRefusedError()


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
