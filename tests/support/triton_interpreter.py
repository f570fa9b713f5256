"""Runs a test file as a program in Triton's interpreter, in a child: Triton reads the switch when it is imported."""

import json
import os
import subprocess
import sys

Errors = dict[str, dict[str, float]]


def errors_printed_by(file: str) -> Errors:
    """The JSON that the file prints as a program: relative errors by case, then by tensor."""
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    run = subprocess.run([sys.executable, file], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    loaded: Errors = json.loads(run.stdout)
    return loaded
