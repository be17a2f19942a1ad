"""The cache of mypy in a new clone: that of the last clone whose code passed. Without one, mypy takes a CPU minute.

mypy reads a file again if its content is another one, wherever the cache came from. It does not notice another version
of a plugin's parts, so a cache is of one set of locked packages and one Python. Only the last one is stored.
"""

import hashlib
import os
import shutil
import sys
import tarfile
import tempfile
from contextlib import suppress
from pathlib import Path

from hekla.lib.checkout import CHECKOUT

_OWN = ".mypy_cache"
_LOCK_FILE = CHECKOUT / "deploy" / "requirements" / "test.txt"
_NAME = "cache.tar"


def begin(clone: Path = CHECKOUT) -> None:
    """Unpack the stored cache, if it fits and the clone has none. A failure costs the minute, not the check."""
    stored = _store() / _key() / _NAME
    if (clone / _OWN).exists() or not stored.is_file():
        return
    with suppress(OSError, tarfile.TarError), tempfile.TemporaryDirectory(dir=clone, prefix=f"{_OWN}-") as new:
        with tarfile.open(stored) as archive:
            archive.extractall(new, filter="data")
        Path(new, _OWN).rename(clone / _OWN)


def store(clone: Path = CHECKOUT) -> None:
    """Store the cache of the clone in place of the last one."""
    folder = _store() / _key()
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        for other in set(folder.parent.iterdir()) - {folder}:
            shutil.rmtree(other, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=folder) as new:
            with tarfile.open(Path(new, _NAME), "w") as archive:
                archive.add(clone / _OWN, _OWN)
            Path(new, _NAME).replace(folder / _NAME)


def _store() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hekla-mypy"


def _key() -> str:
    return hashlib.sha256(sys.version.encode() + _LOCK_FILE.read_bytes()).hexdigest()
