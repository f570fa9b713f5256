"""The base of every service's exceptions: what a caller may know about a failure, as class attributes."""

import re
from typing import ClassVar

import grpc

_REASON = re.compile(r"[A-Z][A-Z0-9_]{2,62}")


class ServiceError(Exception):
    """A failure that a caller may see.

    A subclass sets REASON (upper case, unique in its service, listed in docs/errors.md), CODE, and RETRYABLE (whether
    the same call may succeed later). The message goes over the wire: it names the thing and the limit, never text of a
    user, a path or a URL; a subclass that must quote what its caller sent (a compiler's reason) sets QUOTES_CALLER,
    which keeps the message out of every log. `metadata` repeats the dynamic parts of the message for programs.
    """

    REASON: ClassVar[str] = "INTERNAL"
    CODE: ClassVar[grpc.StatusCode] = grpc.StatusCode.INTERNAL
    RETRYABLE: ClassVar[bool] = False
    QUOTES_CALLER: ClassVar[bool] = False

    def __init__(self, message: str, **metadata: str | int) -> None:
        super().__init__(message)
        self.message = message
        self.metadata = {name: str(value) for name, value in metadata.items()}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not _REASON.fullmatch(cls.REASON):
            raise TypeError(f"{cls.__qualname__}.REASON must be UPPER_CASE, at most 63 characters, not {cls.REASON!r}")
        if not isinstance(cls.CODE, grpc.StatusCode) or cls.CODE is grpc.StatusCode.OK:
            raise TypeError(f"{cls.__qualname__}.CODE must be a status code other than OK, not {cls.CODE!r}")
