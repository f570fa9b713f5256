"""Each contract of .importlinter holds, and fails when it is violated."""

import configparser
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "twinspark_rpc": "protos/rpc/src",
    "twinspark_kernels": "kernels/src",
    "twinspark_engine": "services/engine/src",
    "twinspark_gateway": "services/gateway/src",
    "twinspark_grammar": "services/grammar/src",
    "twinspark_tools": "tools/src",
    "twinspark_demo": "deploy/demo/src",
    "fakes": "tests",
}
# One import that each contract forbids: the module that gets it, and the line.
VIOLATIONS = {
    "services": ("twinspark_gateway/planted.py", "import twinspark_engine"),
    "kernels": ("twinspark_kernels/planted.py", "import grpc"),
    "rpc": ("twinspark_rpc/planted.py", "import twinspark.engine.v1.engine_pb2"),
    "gateway": ("twinspark_gateway/planted.py", "import torch"),
    "tools": ("twinspark_engine/planted.py", "import twinspark_tools"),
    "gates": ("twinspark_tools/gates/planted.py", "import twinspark_engine"),
    "demo": ("twinspark_engine/planted.py", "import twinspark_demo"),
    "demo-training": ("twinspark_demo/planted.py", "import twinspark_engine.loop"),
    "demo-evaluation": ("twinspark_demo/evaluation/planted.py", "import twinspark_demo.documents"),
    "demo-images": ("twinspark_demo/images/planted.py", "import twinspark_demo.pictures"),
    "demo-unseen": ("twinspark_demo/rows/planted.py", "import twinspark_demo.evaluation"),
    "fakes": ("fakes/planted.py", "import twinspark_engine"),
    "engine-layers": ("twinspark_engine/kv_cache/planted.py", "import twinspark_engine.scheduler.plan"),
    "engine-model": ("twinspark_engine/model/planted.py", "import twinspark_engine.scheduler.plan"),
    "engine-bookkeeping": ("twinspark_engine/kv_cache/planted.py", "import torch"),
    "engine-masks": ("twinspark_engine/masks/planted.py", "import torch"),
    "engine-app": ("twinspark_engine/planted.py", "import twinspark_engine.app"),
    "gateway-app": ("twinspark_gateway/planted.py", "import twinspark_gateway.app"),
    "grammar-app": ("twinspark_grammar/planted.py", "import twinspark_grammar.app"),
    "grammar-layers": ("twinspark_grammar/schema/planted.py", "import twinspark_grammar.grammars"),
    "grammar-compiler": ("twinspark_grammar/compiling/job.py", "import twinspark_grammar.masks"),
    "messages": ("twinspark_gateway/reply/planted.py", "import twinspark.engine.v1.engine_pb2"),
    "gateway-layers": ("twinspark_gateway/prompt/planted.py", "import twinspark_gateway.routes.models"),
}


def read_contracts() -> dict[str, str]:
    """Name of each contract by its key."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / ".importlinter")
    prefix = "importlinter:contract:"
    return {key.removeprefix(prefix): parser[key]["name"] for key in parser.sections() if key.startswith(prefix)}


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A copy of every package, in one folder."""
    for package, folder in PACKAGES.items():
        shutil.copytree(ROOT / folder / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def lint(sources: Path, *arguments: str) -> str:
    program = Path(sys.executable).parent / "lint-imports"
    environment = {**os.environ, "PYTHONPATH": str(sources), "COLUMNS": "200"}
    command = [str(program), "--no-cache", "--config", str(ROOT / ".importlinter"), *arguments]
    answer = subprocess.run(command, cwd=sources, env=environment, capture_output=True, text=True, check=False)
    return answer.stdout + answer.stderr


def test_every_contract_is_shown_to_fail_here() -> None:
    assert set(VIOLATIONS) == set(read_contracts())


def test_every_contract_holds(sources: Path) -> None:
    output = lint(sources)
    assert f"Contracts: {len(VIOLATIONS)} kept, 0 broken." in output, output


@pytest.mark.slow
def test_every_contract_fails_when_it_is_violated(sources: Path) -> None:
    for path, line in VIOLATIONS.values():
        with (sources / path).open("a") as file:
            file.write(f"{line}\n")
    output = lint(sources)
    for key, name in read_contracts().items():
        path, line = VIOLATIONS[key]
        assert re.search(re.escape(name) + r"\s+BROKEN", output), (name, output)
        assert f"{path.removesuffix('.py').replace('/', '.')} -> {line.split()[1].split('.')[0]}" in output
