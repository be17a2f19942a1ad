"""`python3 manage.py test`: every check there is, the fast ones first; with arguments, pytest with these."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from hekla.project.browser import find_or_install
from hekla.project.checkout import CHECKOUT
from hekla.project.terminal import say

_TRANSIENT = {
    "HEKLA_SECRET_KEY": "check",
    "DATABASE_URL": "postgresql:///none?host=/nonexistent",
    "VALKEY_URL": "unix:///nonexistent?db=0",
}


def verify(arguments: Sequence[str]) -> int:
    """Run them all, also after one has failed; 0 where all pass."""
    os.chdir(CHECKOUT)
    say(find_or_install())
    if arguments:
        return _pytest(arguments)
    failed = [name for name, argv in _checks().items() if _run(name, argv) != 0]
    if _pytest([]) != 0:
        failed.append("pytest")
    say(f"\nNot passed: {', '.join(failed)}" if failed else "\nEverything passed.")
    return 1 if failed else 0


def _checks() -> dict[str, list[str]]:
    tools = Path(sys.executable).parent
    django = [sys.executable, "-W", "ignore", "-m", "django"]
    return {
        "ruff check": [str(tools / "ruff"), "check"],
        "ruff format": [str(tools / "ruff"), "format", "--check"],
        "import contracts": [str(tools / "lint-imports")],
        "mypy": [str(tools / "mypy")],
        "migrations": [*django, "makemigrations", "--check", "--dry-run"],
    }


def _run(name: str, argv: Sequence[str]) -> int:
    """Quiet where it passes: only what is wrong is worth reading."""
    began = time.monotonic()
    done = subprocess.run(argv, env=_environment(), capture_output=True, text=True, check=False)
    verdict = "passed" if done.returncode == 0 else "NOT PASSED"
    say(f"  {name:<20} {verdict:<12} {time.monotonic() - began:5.1f} s")
    if done.returncode != 0:
        say(done.stdout + done.stderr)
    return done.returncode


def _pytest(arguments: Sequence[str]) -> int:
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT / "platform")}
    return subprocess.run([sys.executable, "-m", "pytest", *arguments], env=environment, check=False).returncode


def _environment() -> dict[str, str]:
    """The checks read the settings and connect to nothing."""
    ours = {"PYTHONPATH": str(CHECKOUT / "platform"), "DJANGO_SETTINGS_MODULE": "hekla.project.settings"}
    return {**_TRANSIENT, **os.environ, **ours}
