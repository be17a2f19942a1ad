"""Finds the Chromium for the browser tests, or installs it if that needs no confirmation."""

import os
import shutil
import subprocess
from pathlib import Path

LIGHTEST = "chromium-headless-shell"
"""Chromium without windows. The others draw theirs also when nobody looks, and take almost twice the CPU."""
PROGRAMS = (LIGHTEST, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_CHINESE_FONT = "fonts-noto-cjk"


def find() -> Path | None:
    """The browser of this machine, or None. The variable CHROMIUM overrides it."""
    named = os.environ.get("CHROMIUM")
    for program in [named] if named else PROGRAMS:
        if found := shutil.which(program):
            return Path(found)
    return None


def find_or_install(*, prefer_lightest: bool) -> str:
    """Find or install a browser, by choice the lightest also where another one is. Returns the result as a sentence."""
    found = find()
    if found and (not prefer_lightest or found.name == LIGHTEST or "CHROMIUM" in os.environ):
        return f"Browser tests use {found}."
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        command = f"apt-get install {LIGHTEST} {_CHINESE_FONT}"
        return _found_or_missing(found, f"it can be installed here only by the administrator: {command}")
    reason = _apt_install(LIGHTEST)
    if reason and not found:
        reason = _apt_install("chromium")  # Ubuntu has no other
    return _found_or_missing(find(), reason)


def _apt_install(program: str) -> str:
    """Install a browser with apt-get. Returns the reason of a failure, or an empty string."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "--yes", "--no-install-recommends", program, _CHINESE_FONT]
    for argv in (["apt-get", "update"], install):
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["apt-get failed"])[-1]


def _found_or_missing(found: Path | None, reason: str) -> str:
    if found and found.name == LIGHTEST:
        return f"Browser tests use {found}."
    if found:
        return f"Browser tests use {found}, which takes almost twice the CPU of {LIGHTEST}; {reason}"
    return f"There is no Chromium on this machine, so the browser tests are skipped; {reason}"
