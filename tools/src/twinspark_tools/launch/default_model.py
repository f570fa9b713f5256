"""The checkpoint that is served where none is given: a tiny random one, made on the first run."""

import hashlib
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from twinspark_tools.launch.terminal import say

PROGRAM = "twinspark_tools.tiny_checkpoint"


def ensure_default_model(build_folder: Path) -> Path:
    """Folder of the tiny checkpoint, made if it is not there. Raises CalledProcessError."""
    folder = build_folder / f"tiny-checkpoint-{_version()}"
    if folder.exists():
        say(f"checkpoint: {folder.name}")
        return folder
    say(f"checkpoint: making a tiny random one (build/{folder.name}), a few seconds")
    build_folder.mkdir(exist_ok=True)
    # Made aside and moved, so that an interrupted run leaves no half of it under the final name.
    draft = Path(tempfile.mkdtemp(prefix="tiny-checkpoint-draft-", dir=build_folder))
    try:
        # A process of its own: this one stays small, without torch.
        subprocess.run([sys.executable, "-m", PROGRAM, str(draft)], check=True, stdout=subprocess.DEVNULL)
        draft.chmod(0o755)
        try:
            draft.rename(folder)
        except OSError:
            if not folder.exists():
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return folder


def _version() -> str:
    """Changes with the program that makes the checkpoint, which is looked up without importing it."""
    spec = find_spec(PROGRAM)
    folders = [] if spec is None else spec.submodule_search_locations or []
    digest = hashlib.sha256()
    for source in sorted(path for folder in folders for path in Path(folder).iterdir() if path.is_file()):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()[:8]
