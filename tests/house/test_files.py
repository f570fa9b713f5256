"""Sizes and names of files."""

import statistics
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ("protos/rpc", "kernels", "services", "tools", "deploy", "tests", "scripts")
# Say nothing about their content, or hide a library when a script runs in their folder.
BANNED_NAMES = {"common", "utils", "helpers", "misc", "base", "triton", "torch", "grpc"}


def python_files() -> list[Path]:
    files = [path for folder in SOURCES for path in (ROOT / folder).rglob("*.py")]
    return [path for path in files if "__pycache__" not in path.parts]


def count_lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def test_no_python_file_is_over_500_lines() -> None:
    assert [str(path) for path in python_files() if count_lines(path) > 500] == []


def median_lines(files: list[Path]) -> float:
    """Of the files that hold more than a docstring."""
    return statistics.median(size for size in map(count_lines, files) if size > 2)


def test_the_median_file_of_the_product_is_under_90_lines() -> None:
    assert median_lines([path for path in python_files() if "src" in path.relative_to(ROOT).parts]) < 90


def test_the_median_python_file_of_the_whole_repository_is_under_90_lines() -> None:
    files = python_files()
    assert {"tests", "scripts", "services"} <= {path.relative_to(ROOT).parts[0] for path in files}
    assert median_lines(files) < 90


def test_the_rpc_library_stays_small() -> None:
    library = ROOT / "protos/rpc/src/twinspark_rpc"
    lines = [line for path in library.glob("*.py") for line in path.read_text().splitlines() if line.strip()]
    assert len(lines) <= 800


def test_no_module_has_a_name_that_says_nothing() -> None:
    names = {part for path in python_files() for part in path.relative_to(ROOT).with_suffix("").parts}
    assert names & BANNED_NAMES == set()


def test_every_package_of_a_distribution_has_an_init_and_tests_have_none() -> None:
    folders = {path.parent for path in python_files()}
    packages = {folder for folder in folders if "/src/" in str(folder)}
    assert [str(folder) for folder in packages if not (folder / "__init__.py").is_file()] == []
    assert list((ROOT / "tests").rglob("__init__.py")) == []
