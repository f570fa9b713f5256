"""Keeps responses for GET, DELETE and previous_response_id, in the memory of this process only."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from twinspark_gateway.errors import ApiError, invalid
from twinspark_gateway.schemas.responses.conversation import Message

MAX_RESPONSES = 1024
MAX_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A response, and the conversation that a next one goes on from."""

    response: dict[str, Any]
    # Without instructions, the reply included.
    messages: Sequence[Message]
    # Characters of both as JSON, in UTF-8.
    num_bytes: int


@dataclass(slots=True)
class ResponseStore:
    """The newest responses within both limits; used from the event loop. Each API key has a scope of its own."""

    max_responses: int = MAX_RESPONSES
    max_bytes: int = MAX_BYTES
    _stored: OrderedDict[tuple[str, str], StoredResponse] = field(default_factory=OrderedDict)
    _num_bytes: int = 0

    def keep(self, scope: str, stored: StoredResponse) -> None:
        """Keep a response; the oldest give way. One that is larger than the limit is not kept."""
        if stored.num_bytes > self.max_bytes:
            return
        self._stored[scope, stored.response["id"]] = stored
        self._num_bytes += stored.num_bytes
        while len(self._stored) > self.max_responses or self._num_bytes > self.max_bytes:
            self._num_bytes -= self._stored.popitem(last=False)[1].num_bytes

    def get(self, scope: str, response_id: str) -> StoredResponse:
        """Give a response. Raises a 404 if it is not here."""
        found = self._stored.get((scope, response_id))
        if found is None:
            raise ApiError(404, f"There is no response with the id '{response_id[:200]}'.", code="response_not_found")
        return found

    def get_previous(self, scope: str, response_id: str) -> StoredResponse:
        """Give the response that a request goes on from. Raises a 400 if it is not here."""
        found = self._stored.get((scope, response_id))
        if found is None:
            message = f"'previous_response_id': there is no response with the id '{response_id[:200]}'."
            raise invalid("previous_response_id", message, code="previous_response_not_found")
        return found

    def delete(self, scope: str, response_id: str) -> None:
        """Forget a response. Raises a 404 if it is not here."""
        self._num_bytes -= self.get(scope, response_id).num_bytes
        del self._stored[scope, response_id]
