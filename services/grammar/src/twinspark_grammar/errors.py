"""What can go wrong with a call to the grammar service: each class is one reason that a caller sees."""

import grpc

from twinspark_rpc import ServiceError


class InvalidFieldError(ServiceError):
    """A field of the call is missing or out of range."""

    REASON = "INVALID_FIELD"
    CODE = grpc.StatusCode.INVALID_ARGUMENT

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}", field=field)


class GrammarInvalidError(ServiceError):
    """The source does not compile; the message is the compiler's reason."""

    REASON = "GRAMMAR_INVALID"
    CODE = grpc.StatusCode.INVALID_ARGUMENT
    QUOTES_CALLER = True

    def __init__(self, reason: str) -> None:
        super().__init__(reason)


class KeywordNotEnforcedError(ServiceError):
    """Under strict, a keyword of a JSON schema that masks do not enforce."""

    REASON = "KEYWORD_NOT_ENFORCED"
    CODE = grpc.StatusCode.INVALID_ARGUMENT
    QUOTES_CALLER = True

    def __init__(self, keyword: str, path: str, reason: str) -> None:
        super().__init__(f"{keyword} at {path or 'the root'} cannot be enforced: {reason}", keyword=keyword, path=path)


class GrammarTooLargeError(ServiceError):
    """The source, or what it compiles to, exceeds a limit of size or depth."""

    REASON = "GRAMMAR_TOO_LARGE"
    CODE = grpc.StatusCode.INVALID_ARGUMENT

    def __init__(self, message: str) -> None:
        super().__init__(message)


class GrammarTooComplexError(ServiceError):
    """Compiling took more time or memory than one grammar gets, and was killed."""

    REASON = "GRAMMAR_TOO_COMPLEX"
    CODE = grpc.StatusCode.INVALID_ARGUMENT

    def __init__(self, message: str) -> None:
        super().__init__(message)


class HandleMismatchError(ServiceError):
    """The handle is not the source's: it was made for another source or tokenizer."""

    REASON = "HANDLE_MISMATCH"
    CODE = grpc.StatusCode.INVALID_ARGUMENT

    def __init__(self) -> None:
        super().__init__("handle: kind and source make another one with the tokenizer of this service")


class TokenNotAllowedError(ServiceError):
    """A committed token is not allowed by the grammar: the caller's state is not this grammar's."""

    REASON = "TOKEN_NOT_ALLOWED"
    CODE = grpc.StatusCode.FAILED_PRECONDITION

    def __init__(self, index: int, token_id: int) -> None:
        super().__init__(
            f"committed token {index} of this round, id {token_id}, is not allowed", index=index, token_id=token_id
        )


class NoTokenAllowedError(ServiceError):
    """After the committed tokens the grammar allows no token at all, and the output is not complete."""

    REASON = "NO_TOKEN_ALLOWED"
    CODE = grpc.StatusCode.FAILED_PRECONDITION

    def __init__(self) -> None:
        super().__init__("the grammar allows no token after the committed ones")


class MasksTooSlowError(ServiceError):
    """The masks of one window took longer than the limit; the stream ends."""

    REASON = "MASKS_TOO_SLOW"
    CODE = grpc.StatusCode.RESOURCE_EXHAUSTED

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the masks of one window took more than {seconds:g} s")


class CompilersBusyError(ServiceError):
    """As many compilations wait as are allowed to."""

    REASON = "COMPILERS_BUSY"
    CODE = grpc.StatusCode.RESOURCE_EXHAUSTED
    RETRYABLE = True

    def __init__(self, queue_limit: int) -> None:
        super().__init__(f"{queue_limit} compilations wait already", queue_limit=queue_limit)


class CompilerLostError(ServiceError):
    """The compiler process ended in mid-work; it is started again by itself."""

    REASON = "COMPILER_LOST"
    CODE = grpc.StatusCode.UNAVAILABLE
    RETRYABLE = True

    def __init__(self) -> None:
        super().__init__("the compiler process is lost; it is being started again")


class GrammarLoadingError(ServiceError):
    """The tokenizer is being loaded."""

    REASON = "GRAMMAR_LOADING"
    CODE = grpc.StatusCode.UNAVAILABLE
    RETRYABLE = True

    def __init__(self) -> None:
        super().__init__("the grammar service is starting")


class GrammarDrainingError(ServiceError):
    """The service stops: open streams end, new calls are refused."""

    REASON = "GRAMMAR_DRAINING"
    CODE = grpc.StatusCode.UNAVAILABLE
    RETRYABLE = True

    def __init__(self) -> None:
        super().__init__("the grammar service is stopping")
