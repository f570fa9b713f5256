"""What an export has written."""

from pathlib import Path


def print_files(folder: Path) -> None:
    """A line a file: megabytes and name."""
    for file in sorted(folder.iterdir()):
        print(f"{file.stat().st_size / 1e6:9.3f} MB  {file.name}")
