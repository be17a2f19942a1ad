"""Podman and what it needs, from packages of Debian 12 in a cache outside the checkout. Nothing is installed."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

# fmt: off
PACKAGES = (
    "podman", "runc", "conmon", "catatonit", "netavark", "aardvark-dns", "golang-github-containers-common",
    "golang-github-containers-image", "libgpgme11", "libassuan0", "libsubid4", "libglib2.0-0", "libseccomp2",
    "libdevmapper1.02.1", "busybox-static", "docker-registry", "uidmap",
)
# fmt: on
DOWNLOAD_SECONDS = 300.0
FOLDER_VARIABLE = "HEKLA_TEST_PODMAN"
"""The folder with the packages, for a run without root (`rootless`), which cannot unpack them."""


class NoPodman(Exception):
    """Podman cannot run here; the message is the reason."""


def programs() -> Path:
    """A folder with the content of all packages, downloaded if it is missing. Raises NoPodman."""
    if FOLDER_VARIABLE in os.environ:
        return Path(os.environ[FOLDER_VARIABLE])
    if os.geteuid() != 0:
        raise NoPodman("no Podman: the tests do not run as root")
    for command in ("apt-get", "dpkg", "unshare", "mount"):
        if shutil.which(command) is None:
            raise NoPodman(f"no Podman: this machine has no {command}")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hekla-podman"
    cache.mkdir(parents=True, exist_ok=True)
    unpacked = cache / hashlib.sha256(" ".join(PACKAGES).encode()).hexdigest()[:12]
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not unpacked.is_dir():
            _unpack(unpacked)
    return unpacked


def _unpack(target: Path) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        try:
            _run(["apt-get", "download", *PACKAGES], folder)
            for package in Path(folder).glob("*.deb"):
                _run(["dpkg", "-x", str(package), "files"], folder)
        except (OSError, subprocess.SubprocessError) as error:
            raise NoPodman(f"no Podman: the packages cannot be had: {error}") from error
        (Path(folder) / "files").rename(target)


def _run(command: list[str], folder: str) -> None:
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=DOWNLOAD_SECONDS,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode:
        raise OSError((done.stderr.strip() or "no reason given").splitlines()[-1])
