"""The folder of the sockets: its path is short enough, and only the owner has access."""

import hashlib
import os
import tempfile
from pathlib import Path

from hekla.launcher.terminal import LaunchRefused

LONGEST_SOCKET_NAME = "/.s.PGSQL.5432.lock"
LONGEST_PATH = 103  # bytes, on macOS; Linux takes 107


def socket_folder(home: Path) -> Path:
    """`home/run`, or a folder among the temporary ones if that path is too long for a socket."""
    inside = home / "run"
    return inside if _fits(inside) else _short(home)


def run_dir(home: Path) -> Path:
    """Create the private folder for sockets. Raises LaunchRefused if it belongs to another user."""
    folder = socket_folder(home)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _make_private(folder)
    return folder


def _fits(folder: Path) -> bool:
    return len(os.fsencode(folder)) + len(LONGEST_SOCKET_NAME) <= LONGEST_PATH


def _short(home: Path) -> Path:
    name = hashlib.sha256(os.fsencode(home.resolve())).hexdigest()[:12]
    parent = Path(tempfile.gettempdir())
    folder = parent / f"hekla-{os.geteuid()}-{name}"
    return folder if _fits(folder) else Path("/tmp") / folder.name  # noqa: S108  (ownership is checked below)


def _make_private(folder: Path) -> None:
    """Make the folder private. Raises LaunchRefused if another user has created it among the temporary folders."""
    status = folder.lstat()
    if folder.is_symlink() or status.st_uid not in {os.geteuid(), *_nobody()}:
        raise LaunchRefused(f"{folder} belongs to another user of this machine. Choose another folder with --data.")
    folder.chmod(0o700)


def _nobody() -> set[int]:
    """The user id of `nobody`, who can own the folder if Hekla runs as root (see `identity`)."""
    return {65534} if os.geteuid() == 0 else set()
