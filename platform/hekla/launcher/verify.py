"""`python3 manage.py test`: runs all checks, the fast ones first. With arguments it runs pytest with these.

The test suite uses all cores, with workers that share nothing but the machine. The slow checks run in parallel to it.
A few tests that fail then run again, alone (decision 0054).
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hekla.launcher import mypy_cache
from hekla.launcher.browser import find_or_install
from hekla.launcher.terminal import say
from hekla.lib.checkout import CHECKOUT

_TRANSIENT = {
    "HEKLA_SECRET_KEY": "check",
    "DATABASE_URL": "postgresql:///none?host=/nonexistent",
    "VALKEY_URL": "unix:///nonexistent?db=0",
}


_EXTERNAL_SERVERS = {"DATABASE_URL", "VALKEY_URL"} & os.environ.keys()
_WORKERS = min((os.cpu_count() or 1) + 1, 4)
"""One more than cores, because some tests only wait; at most 4, because each has its own servers, and collects all."""
_ON_ALL_CORES = ("-n", str(_WORKERS), "--dist", "loadfile", "--no-loadscope-reorder")
_SLOWEST = ("--durations", "30")
_FEW = 3
"""Failed tests that run again. More of them have another cause than a busy machine."""
_FAILED = CHECKOUT / ".pytest_cache" / "v" / "cache" / "lastfailed"


def verify(arguments: Sequence[str]) -> int:
    """Run all checks, also after a failure. Returns 0 if all pass."""
    os.chdir(CHECKOUT)
    say(find_or_install(prefer_lightest=not arguments))
    if arguments:
        return _pytest(arguments)
    _FAILED.unlink(missing_ok=True)
    failed = [name for name, argv in _quick_checks().items() if not _passes(name, argv)]
    mypy_cache.begin()
    with ThreadPoolExecutor(max_workers=1) as beside:
        verdicts = {name: beside.submit(_passes, name, argv) for name, argv in _slow_checks().items()}
        passes = _pytest([*_SLOWEST, *(() if _EXTERNAL_SERVERS else _ON_ALL_CORES)]) == 0
        failed += [name for name, verdict in verdicts.items() if not verdict.result()]
    if "mypy" not in failed:
        mypy_cache.store()
    if not passes and not _pass_alone():
        failed.append("pytest")
    say(f"\nNot passed: {', '.join(failed)}" if failed else "\nEverything passed.")
    return 1 if failed else 0


def _pass_alone() -> bool:
    """Whether the tests that failed are few and pass without others beside them. Prints their names."""
    names = sorted(json.loads(_FAILED.read_text(encoding="utf-8"))) if _FAILED.is_file() else []
    if not 0 < len(names) <= _FEW:
        return False
    say(f"\nFailed beside other tests; they run again, alone: {', '.join(names)}")
    return _pytest(["--last-failed", f"--junitxml={os.devnull}"]) == 0  # the caller's report stays that of all tests


def _quick_checks() -> dict[str, list[str]]:
    tools = Path(sys.executable).parent
    return {
        "ruff check": [str(tools / "ruff"), "check"],
        "ruff format": [str(tools / "ruff"), "format", "--check"],
        "templates": [str(tools / "djangofmt"), "--check", "templates"],
        "import contracts": [str(tools / "lint-imports")],
    }


def _slow_checks() -> dict[str, list[str]]:
    django = [sys.executable, "-W", "ignore", "-m", "django"]
    return {
        "migrations": [*django, "makemigrations", "--check", "--dry-run"],
        "mypy": [str(Path(sys.executable).parent / "mypy")],
    }


def _passes(name: str, argv: Sequence[str]) -> bool:
    """Run a check and print its result; its output only after a failure."""
    began = time.monotonic()
    done = subprocess.run(argv, env=_environment(), capture_output=True, text=True, check=False)
    verdict = "passed" if done.returncode == 0 else "NOT PASSED"
    problems = "" if done.returncode == 0 else f"\n{done.stdout}{done.stderr}"
    say(f"  {name:<20} {verdict:<12} {time.monotonic() - began:5.1f} s{problems}")
    return done.returncode == 0


def _pytest(arguments: Sequence[str]) -> int:
    """Run pytest. It keeps bytecode, also where others do not: all workers and consoles load the same code."""
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT / "platform")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return subprocess.run([sys.executable, "-m", "pytest", *arguments], env=environment, check=False).returncode


def _environment() -> dict[str, str]:
    """Environment of the checks, which read the settings and connect to nothing."""
    ours = {"PYTHONPATH": str(CHECKOUT / "platform"), "DJANGO_SETTINGS_MODULE": "hekla.project.settings"}
    return {**_TRANSIENT, **os.environ, **ours}
