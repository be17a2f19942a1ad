"""Texts that take long to make and are the same for all workers of a run: one makes them, the others read them."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

FOLDER = "HEKLA_TESTS_SHARED"
"""The variable with the folder of the run. The distributor sets it; a single process needs none."""


def once(name: str, make: Callable[[], str]) -> str:
    """The text of this name. Another worker that makes it now is waited for."""
    if FOLDER not in os.environ:
        return make()
    path = Path(os.environ[FOLDER]) / name
    with path.open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        if not (text := file.read()):
            file.write(text := make())
    return text
