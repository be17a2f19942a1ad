"""The user that PostgreSQL runs as, because it refuses to run as root.

If Hekla runs as root, there are two ways. In a user namespace, PostgreSQL sees another user id, while its files stay
root's and no permissions change. Without user namespaces (in some containers), it runs as `nobody`, who needs access
to the programs and the data.
"""

import os
import pwd
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hekla.launcher.terminal import LaunchRefused

_UNSHARE = ("unshare", "--user", "--map-user=1000", "--map-group=1000")


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """The prefix of a command, and the user id to run it as (None: the present user)."""

    prefix: tuple[str, ...] = ()
    user: int | None = None

    def own(self, *folders: Path) -> None:
        """As root, give the folders with their contents to this user: an earlier start may have used another."""
        if os.geteuid() != 0:
            return
        owner = 0 if self.user is None else self.user
        for folder in folders:
            if folder.lstat().st_uid != owner:
                for path in (folder, *folder.rglob("*")):
                    os.chown(path, owner, owner, follow_symlinks=False)

    def let_through(self, folder: Path) -> None:
        """Let this user reach files below `folder`, without permission to list it."""
        if self.user is None:
            return
        os.chown(folder, -1, self.user)
        folder.chmod(0o710)


def find_identity(program: Path, home: Path) -> ProcessIdentity:
    """An identity that can run `program` on files below `home`. Raises LaunchRefused."""
    if os.geteuid() != 0:
        return ProcessIdentity()
    if shutil.which(_UNSHARE[0]) and _succeeds([*_UNSHARE, str(program), "-V"]):
        return ProcessIdentity(prefix=_UNSHARE)
    nobody = _nobody()
    if nobody is not None and _succeeds([str(program), "-V"], nobody) and _succeeds(["ls", "-d", str(home)], nobody):
        return ProcessIdentity(user=nobody)
    raise LaunchRefused(
        "PostgreSQL does not run as root, and this machine offers no other way: user namespaces are switched off, and "
        f"the user nobody cannot reach {program} and {home}. Run Hekla as an ordinary user, or give DATABASE_URL."
    )


def _nobody() -> int | None:
    try:
        return pwd.getpwnam("nobody").pw_uid
    except KeyError:
        return None


def _succeeds(argv: Sequence[str], user: int | None = None) -> bool:
    extra = {} if user is None else {"user": user, "group": user, "extra_groups": []}
    try:
        return subprocess.run(argv, capture_output=True, check=False, timeout=20, cwd="/", **extra).returncode == 0  # type: ignore[call-overload, no-any-return]
    except (OSError, subprocess.SubprocessError):
        return False
