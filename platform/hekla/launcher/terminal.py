"""Terminal output of commands: steps with their duration, and errors as one sentence."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from hekla.domain.errors import Refused

HISTORY_LINE = "history of the simulated teams: "
"""The beginning of a line of output that says how much of the history is made, for the process that shows it."""
_WIDTH = 58


class LaunchRefused(Refused):
    """The command cannot run here and now. The message says what to do."""

    code = "start_refused"


class OtherVersion(LaunchRefused):
    """The data belong to a version of Hekla that this version cannot upgrade. They are unchanged."""

    code = "other_version"


class Step:
    """One line with the title and the duration of a step. On a terminal the seconds are updated while it runs."""

    def __init__(self, title: str, out: TextIO) -> None:
        self._title = title
        self._out = out
        self._began = time.monotonic()
        self.result = ""
        if out.isatty():
            self._write("")

    def tick(self) -> None:
        """Update the seconds."""
        if self._out.isatty():
            self._write(f"{time.monotonic() - self._began:.0f} s")

    def end(self) -> None:
        """Show the result and the time."""
        self._write(f"{time.monotonic() - self._began:.1f} s")
        self._out.write("\n")
        self._out.flush()

    def _write(self, seconds: str) -> None:
        text = f"  {self._title}{': ' if self.result else ''}{self.result}"
        start = "\r\x1b[K" if self._out.isatty() else ""
        self._out.write(f"{start}{text:<{_WIDTH}} {seconds:>7}")
        self._out.flush()


@contextmanager
def step(title: str, out: TextIO | None = None) -> Iterator[Step]:
    """A step of a command. A failing step ends its line, so that the reason starts on a new one."""
    out = out or sys.stdout
    running = Step(title, out)
    try:
        yield running
    except BaseException:
        out.write("\n" if out.isatty() else f"  {title}: not done\n")
        raise
    running.end()


def say(text: str = "") -> None:
    """Print one line, flushed at once, also into a file."""
    print(text, flush=True)
