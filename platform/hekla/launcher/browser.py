"""Finds the Chromium for the browser tests, or installs it if that needs no confirmation."""

import os
import shutil
import subprocess
from pathlib import Path

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_CHINESE_FONT = "fonts-noto-cjk"


def find() -> Path | None:
    """The browser of this machine, or None. The variable CHROMIUM overrides it."""
    named = os.environ.get("CHROMIUM")
    for program in [named] if named else PROGRAMS:
        if found := shutil.which(program):
            return Path(found)
    return None


def find_or_install() -> str:
    """Find or install a browser. Returns the result as a sentence."""
    if found := find():
        return f"Browser tests use {found}."
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return _missing("it can be installed here only by the administrator: apt-get install chromium " + _CHINESE_FONT)
    reason = _apt_install()
    found = find()
    return f"Browser tests use {found}, which was installed for them." if found else _missing(reason)


def _apt_install() -> str:
    """Install Chromium with apt-get. Returns the reason of a failure, or an empty string."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "--yes", "--no-install-recommends", "chromium", _CHINESE_FONT]
    for argv in (["apt-get", "update"], install):
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["apt-get failed"])[-1]


def _missing(why: str) -> str:
    return f"There is no Chromium on this machine, so the browser tests are skipped; {why}"
