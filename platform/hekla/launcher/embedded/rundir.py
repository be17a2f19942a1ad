"""Where the sockets lie: a folder whose path is short enough, and that only the owner may enter."""

import hashlib
import os
import tempfile
from pathlib import Path

from hekla.launcher.terminal import LaunchRefused

LONGEST_SOCKET_NAME = "/.s.PGSQL.5432.lock"
LONGEST_PATH = 103  # bytes, on macOS; Linux takes 107


def socket_folder(home: Path) -> Path:
    """`home/run`, or where that is too long for a socket's path, a folder of ours among the temporary ones."""
    inside = home / "run"
    return inside if _fits(inside) else _short(home)


def run_dir(home: Path) -> Path:
    """The folder for sockets, made and private. Raises LaunchRefused where somebody else has it."""
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
    return folder if _fits(folder) else Path("/tmp") / folder.name  # noqa: S108  (checked to be ours below)


def _make_private(folder: Path) -> None:
    """A folder among the temporary ones may have been put there by somebody else."""
    status = folder.lstat()
    if folder.is_symlink() or status.st_uid not in {os.geteuid(), *_nobody()}:
        raise LaunchRefused(f"{folder} belongs to another user of this machine. Choose another folder with --data.")
    folder.chmod(0o700)


def _nobody() -> set[int]:
    """As root the sockets may be handed to `nobody` (see `identity`)."""
    return {65534} if os.geteuid() == 0 else set()
