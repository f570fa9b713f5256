"""What the store of responses keeps."""

import pytest

from twinspark_gateway.errors import ApiError
from twinspark_gateway.schemas.responses.store import ResponseStore, StoredResponse


def build(name: str, num_bytes: int = 10) -> StoredResponse:
    return StoredResponse({"id": name}, (), num_bytes)


def has(store: ResponseStore, name: str) -> bool:
    try:
        store.get("", name)
    except ApiError:
        return False
    return True


def kept(store: ResponseStore, names: str) -> str:
    return "".join(name for name in names if has(store, name))


def test_the_newest_are_kept_within_their_number() -> None:
    store = ResponseStore(max_responses=2)
    for name in "abc":
        store.keep("", build(name))
    assert kept(store, "abc") == "bc"


def test_the_newest_are_kept_within_their_bytes() -> None:
    store = ResponseStore(max_bytes=25)
    for name in "abc":
        store.keep("", build(name))
    assert kept(store, "abc") == "bc"
    store.keep("", build("d", 25))
    assert kept(store, "abcd") == "d"
    store.keep("", build("e", 26))
    assert kept(store, "abcde") == "d"


def test_what_is_deleted_makes_room() -> None:
    store = ResponseStore(max_bytes=25)
    for name in "ab":
        store.keep("", build(name))
    store.delete("", "b")
    store.keep("", build("c"))
    assert kept(store, "abc") == "ac"


def test_each_scope_has_its_own() -> None:
    store = ResponseStore()
    store.keep("one", build("a"))
    assert store.get("one", "a").response == {"id": "a"}
    for ask in (store.get, store.get_previous, store.delete):
        with pytest.raises(ApiError):
            ask("two", "a")


def test_the_limits_are_those_of_the_documents() -> None:
    assert (ResponseStore().max_responses, ResponseStore().max_bytes) == (1024, 256 * 1024 * 1024)
