"""API keys: `label: key` lines of a file and of a setting, kept as SHA-256 digests and compared in constant time."""

import hashlib
import hmac
import re
import stat
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

import structlog

from twinspark_gateway.settings import Settings

log = structlog.get_logger()

_LABEL = re.compile(r"[A-Za-z0-9._-]{1,64}")
_RECHECK_SECONDS = 1.0


class KeysError(Exception):
    """The keys cannot be used; the message says why and never holds a key."""


def load_keys(path: Path) -> dict[bytes, str]:
    """Read the digests and labels of a keys file. Raises KeysError."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise KeysError(f"the keys file cannot be read: {type(error).__name__}") from error
    if mode & 0o077:
        raise KeysError(f"the keys file must have mode 0600, not {mode:04o}")
    return read_keys(text.splitlines(), "the keys file")


def read_keys(lines: Iterable[str], where: str) -> dict[bytes, str]:
    """Read `label: key` lines, empty ones and comments apart; `where` names them in errors. Raises KeysError."""
    digests: dict[bytes, str] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        label, colon, key = (part.strip() for part in line.partition(":"))
        if not colon or not key or not _LABEL.fullmatch(label):
            raise KeysError(f"line {number} of {where} is not `label: key`")
        digests[_digest(key)] = label
    if not digests:
        raise KeysError(f"{where} holds no key")
    return digests


def build_keyring(settings: Settings) -> "Keyring | None":
    """Give the keys that the settings name; None where they name none, and no key is asked for. Raises KeysError."""
    if not settings.asks_for_keys:
        return None
    text = settings.keys.get_secret_value()
    return Keyring(settings.keys_file, fixed=read_keys(text.split(","), "the setting keys") if text else {})


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


class Keyring:
    """The keys in use: fixed ones, and those of a file, which is read again when it changes.

    While a new version of the file is broken, no key is valid.
    """

    def __init__(
        self,
        path: Path | None,
        fixed: Mapping[bytes, str] = MappingProxyType({}),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self._fixed = fixed
        self._clock = clock
        self._digests = {**(load_keys(path) if path is not None else {}), **fixed}
        self._version = self._read_version()
        self._checked_at = clock()

    def find_label(self, headers: Mapping[str, str]) -> str | None:
        """Give the label of the request's key (Authorization: Bearer, or x-api-key), None if it has no valid one."""
        self._refresh()
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        given = bearer.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")
        digest, found = _digest(given), None
        # Every digest is compared, so that the time says nothing about which one matched.
        for known, label in self._digests.items():
            if hmac.compare_digest(known, digest):
                found = label
        return found

    def reload(self) -> None:
        """Read the file now, changed or not."""
        self._version = self._read_version()
        if self._path is None:
            return
        try:
            self._digests = {**load_keys(self._path), **self._fixed}
            log.info("keys_loaded", count=len(self._digests))
        except KeysError as error:
            self._digests = {}
            log.error("keys_unusable", reason=str(error))

    def _read_version(self) -> tuple[int, int, int] | None:
        if self._path is None:
            return None
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_ino, status.st_mode

    def _refresh(self) -> None:
        now = self._clock()
        if now - self._checked_at < _RECHECK_SECONDS:
            return
        self._checked_at = now
        if self._read_version() != self._version:
            self.reload()
