"""Which checkpoint is served: the folder that was named, or else the demo model of this repository."""

from pathlib import Path

DEMO_FOLDER = Path("deploy/demo/checkpoint")
"""From the root of the repository, where make runs."""


class ModelFolderError(Exception):
    """The folder is no checkpoint; the message says what to do."""


def find_model(given: Path | None, root: Path) -> Path:
    """Absolute path of the given folder, or of the demo model under root. Raises ModelFolderError."""
    if given is None:
        return _find_demo(root)
    if not given.is_dir():
        raise ModelFolderError(f"MODEL={given}: no such folder")
    if not _is_checkpoint(given):
        raise ModelFolderError(f"MODEL={given}: the folder holds no config.json, so it is no checkpoint")
    return given.resolve()


def _find_demo(root: Path) -> Path:
    folder = root / DEMO_FOLDER
    if not _is_checkpoint(folder):
        raise ModelFolderError(
            f"the demo model is not in {DEMO_FOLDER}: bring it back with `git checkout HEAD -- {DEMO_FOLDER}` in the "
            "root of the repository, or name another checkpoint with MODEL=folder"
        )
    return folder.resolve()


def _is_checkpoint(folder: Path) -> bool:
    return (folder / "config.json").is_file()
