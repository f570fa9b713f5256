"""The documents say what the code says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOP_FOLDERS = r"protos|kernels|services|tools|tests|docs|scripts|deploy"
# A name in backquotes that looks like a path from the root of this repository.
FROM_ROOT = re.compile(
    rf"`((?:{TOP_FOLDERS})/[\w./-]*|Makefile|\.(?:ci|importlinter|gitignore|python-version)[\w/.]*)`"
)
# A name in backquotes of a source or text file; in a README it is one of its own folder or package.
OF_PACKAGE = re.compile(r"`((?:[\w-]+/)*[\w-]+\.(?:py|md|proto|sh|toml))`")
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)")
# Exist after the set-up only.
BUILT = (".venv", "protos/gen", "build/")

PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "AGENTS.md", "kernels/CONTRACT.md")]
PAGES += sorted((ROOT / "docs").rglob("*.md"))
READMES = [
    path
    for pattern in ("services/*", "kernels/**", "protos/**", "tools/**", "deploy/*")
    for path in sorted(ROOT.glob(f"{pattern}/README.md"))
    if "gen" not in path.parts
]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def find_paths(page: Path, text: str) -> dict[str, list[Path]]:
    """Paths that a page names or links to, each with the places where it may be."""
    places = {name: [ROOT / name] for name in FROM_ROOT.findall(text)}
    places |= {name: [page.parent / name] for name in LINK.findall(text)}
    if page in READMES:
        packages = [folder for folder in page.parent.glob("src/*") if folder.is_dir()]
        for name in set(OF_PACKAGE.findall(text)) - places.keys():
            places[name] = [folder / name for folder in (page.parent, *packages)]
    return {name: found for name, found in places.items() if not name.startswith(BUILT)}


def find_missing(page: Path, text: str) -> list[str]:
    return [name for name, places in find_paths(page, text).items() if not any(place.exists() for place in places)]


def test_settings_errors_and_metrics_are_listed_as_they_are() -> None:
    command = [sys.executable, "scripts/write_docs.py", "--check"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr


@pytest.mark.parametrize("page", [*PAGES, *READMES], ids=name_of)
def test_every_path_that_a_page_names_exists(page: Path) -> None:
    assert find_missing(page, page.read_text()) == []


def test_every_page_of_a_person_is_checked() -> None:
    names = {name_of(page) for page in (*PAGES, *READMES)}
    assert {"README.md", "docs/architecture.md", "services/engine/README.md", "kernels/README.md"} <= names
    assert {"services/gateway/README.md", "kernels/src/twinspark_kernels/kda/README.md"} <= names
    assert len([name for name in names if name.startswith("docs/decisions/")]) >= 6
    assert [name for name in names if name.startswith("docs/recipes/")] != []
    readme = ROOT / "services/gateway/README.md"
    assert len(find_paths(readme, readme.read_text())) >= 10


def test_a_path_that_is_not_there_is_found_missing() -> None:
    text = "`web/access.py` `web/nowhere.py` `nowhere.md` [x](src/nowhere) [y](pyproject.toml#z) `docs/nowhere.md`"
    missing = {"web/nowhere.py", "nowhere.md", "src/nowhere", "docs/nowhere.md"}
    assert set(find_missing(ROOT / "services/gateway/README.md", text)) == missing
    text = "`services/nowhere/x.py` `tokenizer.json` [x](../services) [y](../nowhere) [z](https://example.org/x)"
    assert set(find_missing(ROOT / "docs/architecture.md", text)) == {"services/nowhere/x.py", "../nowhere"}


def test_the_architecture_page_names_many_files() -> None:
    page = ROOT / "docs/architecture.md"
    assert len({name for name in find_paths(page, page.read_text()) if name.endswith(".py")}) >= 30


def test_every_make_target_says_what_it_does() -> None:
    targets = re.findall(r"^([a-z][a-z-]*):(.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert len(targets) >= 10
    assert [name for name, rest in targets if " ## " not in rest] == []
