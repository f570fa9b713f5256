"""The hash by which ranks agree that they hold the same checkpoint: config, names, sizes and headers, not the data."""

import hashlib
from pathlib import Path

from twinspark_engine.model.weights.headers import checkpoint_files, read_header


def checkpoint_hash(folder: Path) -> str:
    """SHA-256, as hex, of config.json and of every safetensors file's name, size and header."""
    digest = hashlib.sha256((folder / "config.json").read_bytes())
    for file in checkpoint_files(folder):
        header = read_header(file)
        digest.update(f"{file.name}:{file.stat().st_size}:{len(header)}:".encode())
        digest.update(header)
    return digest.hexdigest()
