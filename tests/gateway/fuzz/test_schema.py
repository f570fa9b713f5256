"""Requests drawn from the gateway's own OpenAPI document, right ones and wrong ones: none is a 500."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
# How many cases of a hundred go to each path and kind; the rest of the document is asked once.
SHARES = {
    ("/v1/chat/completions", GenerationMode.POSITIVE): 20,
    ("/v1/chat/completions", GenerationMode.NEGATIVE): 5,
    ("/v1/completions", GenerationMode.POSITIVE): 15,
    ("/v1/completions", GenerationMode.NEGATIVE): 5,
    ("/v1/messages", GenerationMode.POSITIVE): 13,
    ("/v1/messages", GenerationMode.NEGATIVE): 5,
    ("/v1/responses", GenerationMode.POSITIVE): 13,
    ("/v1/responses", GenerationMode.NEGATIVE): 4,
    ("/tokenize", GenerationMode.POSITIVE): 10,
    ("/detokenize", GenerationMode.POSITIVE): 5,
    ("/v1/models/{name}", GenerationMode.POSITIVE): 5,
}


def operations(url: str) -> Iterator[Any]:
    """Give the operations of the document that the gateway serves."""
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    for result in schema.get_all_operations():
        assert isinstance(result, Ok), result
        yield result.ok()


def test_requests_drawn_from_the_document_are_never_a_500(url: str, num_cases: int) -> None:
    by_path = {(operation.path, operation.method): operation for operation in operations(url)}
    statuses: Counter[tuple[str, int]] = Counter()
    with requests.Session() as session:
        for (path, mode), share in SHARES.items():
            operation = by_path[path, "get" if "{" in path else "post"]
            count = max(1, num_cases * share // 100)
            _run(operation.as_strategy(generation_mode=mode), count, session, statuses)
    assert sum(statuses.values()) >= num_cases * 0.9, statuses
    # Cases that are all refused would test the first check of each field only. What is drawn for one path depends on
    # which modules are loaded, from whose constants Hypothesis draws too, so this holds over all paths.
    num_right = sum(count for (_, status), count in statuses.items() if status == 200)
    assert num_right > num_cases / 20, statuses
    health = requests.get(f"{url}/health", timeout=60).json()
    assert (health["ok"], health["inflight"]) == (True, 0)
    print(dict(statuses))


def _run(
    strategy: st.SearchStrategy[Case[Any]], count: int, session: requests.Session, statuses: Counter[tuple[str, int]]
) -> None:
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        derandomize=count <= 500,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def check(case: Case[Any]) -> None:
        response = case.call(session=session, timeout=60)
        statuses[case.operation.path, response.status_code] += 1
        case.validate_response(response, checks=CHECKS)

    check()


def test_every_other_operation_answers_as_documented(url: str) -> None:
    for operation in operations(url):
        if operation.method == "get" and "{" not in operation.path:
            case = operation.Case()
            case.validate_response(case.call(timeout=60), checks=CHECKS)
