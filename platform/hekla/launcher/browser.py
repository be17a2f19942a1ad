"""The Chromium that the browser tests drive: found, or installed where that is possible without asking anybody."""

import os
import shutil
import subprocess
from pathlib import Path

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_CHINESE_FONT = "fonts-noto-cjk"


def find() -> Path | None:
    """The browser of this machine; CHROMIUM names another."""
    named = os.environ.get("CHROMIUM")
    for program in [named] if named else PROGRAMS:
        if found := shutil.which(program):
            return Path(found)
    return None


def find_or_install() -> str:
    """Make sure of a browser; says in words what came of it."""
    if found := find():
        return f"Browser tests use {found}."
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return _missing("it can be installed here only by the administrator: apt-get install chromium " + _CHINESE_FONT)
    reason = _apt_install()
    found = find()
    return f"Browser tests use {found}, which was installed for them." if found else _missing(reason)


def _apt_install() -> str:
    """Empty, or why it did not succeed."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "--yes", "--no-install-recommends", "chromium", _CHINESE_FONT]
    for argv in (["apt-get", "update"], install):
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["apt-get failed"])[-1]


def _missing(why: str) -> str:
    return f"There is no Chromium on this machine, so the browser tests are skipped; {why}"
