"""The Triton kernels of the hyper-connection in Triton's interpreter, outputs and gradients against float64.

Triton decides at import whether it interprets. So this file is also a program, run once by a process of its own: it
prints the relative errors of every case as JSON. Of the 16-bit types the interpreter multiplies matrices in fp16 only.
"""

import json
from functools import partial

import pytest

# dtype, rows, width, Sinkhorn iterations, limit of the errors: fp32 sums in another order, fp16 outputs
# round by 5e-4 each. The rows fill no block.
CASES = {
    "fp32": ("float32", 37, 64, 3, 5e-6),
    "fp32, iterations as shipped": ("float32", 3, 64, 20, 5e-6),
    "fp32, one iteration": ("float32", 5, 128, 1, 5e-6),
    "fp16": ("float16", 67, 128, 2, 3e-3),
}


def errors_of(case: str) -> dict[str, float]:
    """Relative errors of outputs and gradients; to be called where Triton interprets."""
    import torch

    from twinspark_demo.training.hyper_connection import reference
    from twinspark_demo.training.hyper_connection.comparison import draw_site, outputs_and_gradients, relative_errors
    from twinspark_demo.training.hyper_connection.function import HyperConnectionPost, HyperConnectionPre

    dtype, rows, width, iterations, _ = CASES[case]
    site = draw_site(rows, width, getattr(torch, dtype))
    definition = partial(reference.hc_pre, rms_eps=1e-3, hc_eps=1e-3, sinkhorn_iters=iterations)
    expected = outputs_and_gradients(site.to_float64(), definition, reference.hc_post)
    actual = outputs_and_gradients(
        site, lambda *leaves: HyperConnectionPre.apply(*leaves, 1e-3, 1e-3, iterations), HyperConnectionPost.apply
    )
    assert actual["u"].dtype == actual["out"].dtype == site.leaves["streams"].dtype
    return relative_errors(actual, expected)


@pytest.fixture(scope="module")
def errors() -> dict[str, dict[str, float]]:
    """By case, then by tensor."""
    # Imported here: the child that runs this file as a program has no tests on its path.
    from support.triton_interpreter import errors_printed_by

    return errors_printed_by(__file__)


@pytest.mark.parametrize("case", CASES)
def test_outputs_and_gradients_of_the_kernels_are_those_of_float64(
    case: str, errors: dict[str, dict[str, float]]
) -> None:
    limit = CASES[case][-1]
    assert len(errors[case]) == 9
    assert {name: error for name, error in errors[case].items() if not error < limit} == {}


if __name__ == "__main__":
    print(json.dumps({case: errors_of(case) for case in CASES}))
