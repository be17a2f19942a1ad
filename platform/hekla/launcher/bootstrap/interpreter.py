"""Which Python the environment gets: the running one, or a much faster build of the same version on this machine.

A Python that was compiled without profile-guided optimization, as pyenv does by default, takes about 1.6 times the CPU
time of a distribution's. Everything of Hekla runs on it, so the installation looks once for a better one (decision
0073).
"""

import math
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from hekla.launcher.terminal import LaunchRefused

_PLACES = ("/usr/bin", "/usr/local/bin", "/opt/homebrew/bin")
_MUCH_FASTER = 1.25
"""The running Python stays unless it takes this many times the CPU time of another."""
_ANSWERS_WITHIN_SECONDS = 20
_PROBE = """
import ctypes, ensurepip, ssl, sys, time, venv, zlib
class Counter:
    def __init__(self, value): self.value = value
    def next(self): return Counter(self.value + 1)
def count():
    began, counter, names = time.process_time(), Counter(0), {}
    while counter.value < 20_000:
        counter = counter.next()
        names[counter.value % 100] = str(counter.value)
    return time.process_time() - began
print(*sys.version_info[:2], min(count() for _ in range(5)))
"""


def best_interpreter(places: Sequence[str] = _PLACES) -> str:
    """The path of the Python to make an environment with. Raises LaunchRefused if HEKLA_PYTHON names none.

    HEKLA_PYTHON names one; in a virtual environment, the person has chosen one already.
    """
    if named := os.environ.get("HEKLA_PYTHON"):
        return _named(named)
    if sys.prefix != sys.base_prefix:
        return sys.executable
    own = _seconds(sys.executable) or math.inf
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    found = [str(path) for place in places if os.access(path := Path(place) / name, os.X_OK)]
    others = {path: seconds for path in found if (seconds := _seconds(path)) is not None}
    fastest = min(others, key=others.__getitem__, default=sys.executable)
    return fastest if others.get(fastest, math.inf) * _MUCH_FASTER < own else sys.executable


def _named(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise LaunchRefused(f"HEKLA_PYTHON names {name}, and there is no such program. Name a Python, or unset it.")
    if _seconds(path) is None:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise LaunchRefused(
            f"HEKLA_PYTHON names {name}, which is no Python {version} or lacks its parts venv, ensurepip or ssl. "
            "Name another, or unset it."
        )
    return path


def _seconds(python: str) -> float | None:
    """CPU seconds of a fixed piece of work; none if it is another version, or lacks a part that Hekla needs."""
    try:
        done = subprocess.run(
            [python, "-I", "-c", _PROBE], capture_output=True, text=True, check=True, timeout=_ANSWERS_WITHIN_SECONDS
        )
        major, minor, seconds = done.stdout.split()
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return float(seconds) if (int(major), int(minor)) == sys.version_info[:2] else None
