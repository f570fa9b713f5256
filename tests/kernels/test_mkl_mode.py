"""MKL gets its strict mode where it has one, before its first product."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from twinspark_kernels.mkl_mode import CPU_INFO, STRICT, VARIABLE, choose_mode

PRODUCTS = """
import torch, twinspark_kernels
weight = torch.randn(1024, 1000).T
x = torch.randn(64, 1000)
outs = []
for count in (1, 2):
    torch.set_num_threads(count)
    outs.append(x @ weight)
print(torch.equal(*outs))
"""


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("vendor_id\t: GenuineIntel\n", STRICT),
        ("vendor_id\t: AuthenticAMD\n", None),
        ("CPU implementer\t: 0x41\n", None),
    ],
)
def test_only_intel_processors_get_the_strict_mode(tmp_path: Path, text: str, mode: str | None) -> None:
    (tmp_path / "cpuinfo").write_text(text)
    assert choose_mode(tmp_path / "cpuinfo") == mode
    assert choose_mode(tmp_path / "none") is None


@pytest.mark.parametrize("before", [None, "COMPATIBLE"])
def test_a_product_of_few_rows_has_the_same_bits_with_one_and_two_threads(before: str | None) -> None:
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    environment |= {} if before is None else {VARIABLE: before}
    done = subprocess.run([sys.executable, "-c", PRODUCTS], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_this_process_has_the_mode_of_its_machine() -> None:
    mode = choose_mode(CPU_INFO)
    assert mode is None or os.environ[VARIABLE] == mode
