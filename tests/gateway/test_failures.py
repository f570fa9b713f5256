"""A request that the server fails to process."""

from typing import Any

import pytest

from twinspark_gateway.routes import models


async def test_a_failure_says_that_the_connection_ends(gateway: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise LookupError("secret")

    monkeypatch.setattr(models, "gateway_of", fail)
    response = await gateway.client.get("/v1/models")
    assert (response.status_code, response.headers["connection"]) == (500, "close")
    assert response.json()["error"]["message"] == "The server failed to process the request."
    # A client that keeps connections makes a new one.
    assert (await gateway.client.get("/health")).status_code == 200
