"""The end of the server: when it begins, new requests are refused; when its time is over, running ones end."""

import asyncio

from twinspark_gateway.errors import SERVER_ERROR, ApiError


def draining() -> ApiError:
    """Build the 503 of a request that the end of the server refuses or cuts short."""
    return ApiError(503, "The server stops: running requests end, new ones are refused.", type=SERVER_ERROR)


class Drain:
    """Known to the server, which begins it, and to everything that runs for long. Used from the event loop only."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._over: asyncio.Future[None] | None = None
        self.has_begun = False

    @property
    def over(self) -> asyncio.Future[None]:
        """Done once running requests must end. Belongs to the event loop that is running at the first call."""
        if self._over is None:
            self._over = asyncio.get_running_loop().create_future()
        return self._over

    def begin(self) -> None:
        """Refuse new requests from now on, and end running ones when the time is over."""
        self.has_begun = True
        asyncio.get_running_loop().call_later(self._seconds, self.end)

    def end(self) -> None:
        """End running requests now."""
        if not self.over.done():
            self.over.set_result(None)
