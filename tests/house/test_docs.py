"""The documents say what the code says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# A name in backquotes that looks like a path of this repository.
LINK = re.compile(r"\]\(\.\./([\w./-]+)\)")
PATH = re.compile(r"`((?:protos|kernels|services|tools|tests|docs|scripts|deploy)/[\w./-]*|Makefile|\.\w[\w/.]*)`")


def find_paths(document: str) -> list[str]:
    """Paths of this repository that a document names or links to."""
    text = (ROOT / document).read_text()
    return PATH.findall(text) + LINK.findall(text)


def test_settings_errors_and_metrics_are_listed_as_they_are() -> None:
    command = [sys.executable, "scripts/write_docs.py", "--check"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md", "AGENTS.md", "docs/architecture.md"])
def test_every_path_that_a_document_names_exists(document: str) -> None:
    paths = find_paths(document)
    missing = [path for path in paths if not (ROOT / path).exists() and not path.startswith((".venv", "protos/gen"))]
    assert missing == []


def test_the_architecture_page_names_many_files() -> None:
    paths = find_paths("docs/architecture.md")
    assert len({path for path in paths if path.endswith(".py")}) >= 30


def test_every_make_target_says_what_it_does() -> None:
    targets = re.findall(r"^([a-z][a-z-]*):(.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert len(targets) >= 10
    assert [name for name, rest in targets if " ## " not in rest] == []
