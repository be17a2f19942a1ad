"""A process of a user without root who can run Podman. The user exists only in the process's own mount namespace.

There, the user databases have one more line, the programs of Podman are in their places, and the folders on the path to
this interpreter and checkout can be entered. The machine itself is not changed.
"""

import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.podman.programs import FOLDER_VARIABLE, NoPodman, programs

from hekla.lib.checkout import CHECKOUT

UID = 23_456
_NAME = "hekla-rootless"
_SUBORDINATE_IDS = f"{_NAME}:2300000000:65536\n"
_USER_FILES = {
    "passwd": f"{_NAME}:x:{UID}:{UID}::/:/bin/sh\n",
    "group": f"{_NAME}:x:{UID}:\n",
    "subuid": _SUBORDINATE_IDS,
    "subgid": _SUBORDINATE_IDS,
}
_AS_USER = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups"]
_NAMESPACES = ["unshare", "--mount", "--propagation", "slave", "--pid", "--fork", "--kill-child", "--mount-proc"]
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


def run(command: Sequence[str], env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a command as this user in a new folder, and end all that it leaves. Raises NoPodman.

    The name of the folder is short: Podman never notices the end of a container if its folder has over 50 characters.
    """
    unpacked = programs()
    _check_namespaces()
    with tempfile.TemporaryDirectory(prefix="pods-", ignore_cleanup_errors=True) as name:
        home = Path(name)
        _write_users(home)
        script = " &&\n".join(
            [
                *(f"mount --bind {home / file} /etc/{file}" for file in _USER_FILES),
                *_open_paths([Path(one).resolve() for one in (sys.base_prefix, sys.prefix, CHECKOUT, unpacked)], home),
                f"mount -t overlay overlay -o lowerdir={unpacked}/usr:/usr /usr",
                f'exec {" ".join(_AS_USER)} catatonit -- "$@"',
            ]
        )
        settings = {"PATH": _PATH, "HOME": name, "TMPDIR": name, FOLDER_VARIABLE: str(unpacked)}
        settings["PYTHONPATH"] = f"{CHECKOUT}:{CHECKOUT / 'platform'}"
        inside = [*_NAMESPACES, "sh", "-c", script, "sh", *command]
        return subprocess.run(inside, env={**settings, **env}, cwd=name, capture_output=True, text=True, check=False)


def _check_namespaces() -> None:
    try:
        subprocess.run([*_AS_USER, "unshare", "--user", "true"], capture_output=True, text=True, check=True)
    except FileNotFoundError as error:
        raise NoPodman(f"no Podman: this machine has no {error.filename}") from error
    except subprocess.CalledProcessError as error:
        raise NoPodman(f"no Podman: the system gives users no namespaces: {error.stderr.strip()}") from error


def _write_users(home: Path) -> None:
    os.chown(home, UID, UID)
    for name, line in _USER_FILES.items():
        system = Path("/etc", name)
        if not system.exists():
            raise NoPodman(f"no Podman: this machine has no {system}")
        (home / name).write_text(system.read_text() + line)
        (home / name).chmod(0o644)


def _open_paths(paths: Sequence[Path], home: Path) -> list[str]:
    """Commands after which others can enter the path to each of these folders: a closed folder on it is replaced."""
    inside: dict[Path, list[Path]] = defaultdict(list)
    for path in paths:
        if closed := next((one for one in reversed(path.parents) if not one.stat().st_mode & 0o001), None):
            inside[closed].append(path)
    lines = []
    for number, (closed, found) in enumerate(inside.items()):
        aside = home / f"aside-{number}"
        aside.mkdir()
        lines += [f"mount --rbind {closed} {aside}", f"mount -t tmpfs -o mode=755 tmpfs {closed}"]
        for path in found:
            lines += [f"mkdir -p {path}", f"mount --rbind {aside / path.relative_to(closed)} {path}"]
    return lines
