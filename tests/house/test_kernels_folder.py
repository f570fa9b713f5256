"""The folder `kernels` at the root must not pass for Hugging Face's package of that name, which Transformers asks for.

It is safe because it is no package: without an __init__.py it has no version, and Transformers takes that for absent.
"""

import os
import subprocess
import sys
from pathlib import Path

from transformers.utils.import_utils import KERNELS_MIN_VERSION

ROOT = Path(__file__).parents[2]
ASK = """
import importlib.util
import sys
from transformers.utils.import_utils import is_kernels_available
found = importlib.util.find_spec("kernels")
folders = list(found.submodule_search_locations) if found else []
print(is_kernels_available(), sys.argv[1] in folders)
"""


def ask_transformers(root: Path) -> str:
    """Whether the package counts as available, and whether the folder of `root` is what the import system finds."""
    command = [sys.executable, "-c", ASK, str(root / "kernels")]
    environment = {**os.environ, "PYTHONPATH": str(root), "USE_TORCH": "0"}
    answer = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.strip()


def test_transformers_does_not_take_our_kernels_folder_for_the_kernels_package() -> None:
    assert ask_transformers(ROOT) == "False True"


def test_an_init_file_would_make_it_pass_for_the_package(tmp_path: Path) -> None:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels/__init__.py").write_text(f"__version__ = {KERNELS_MIN_VERSION!r}\n")
    assert ask_transformers(tmp_path) == "True True"
