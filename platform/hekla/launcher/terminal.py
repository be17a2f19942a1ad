"""What the commands say in a terminal: their steps with the seconds each took, and the sentence they stop with."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from hekla.domain.errors import Refused

_WIDTH = 58


class LaunchRefused(Refused):
    """Hekla cannot do this here and now; the message says what to do about it."""

    code = "start_refused"


class OtherVersion(LaunchRefused):
    """The data are of a version of Hekla that this one does not follow. They stay as they are."""

    code = "other_version"


class Step:
    """One line: what is being done, and in the end how long it took. On a terminal the seconds are seen to grow."""

    def __init__(self, title: str, out: TextIO) -> None:
        self._title = title
        self._out = out
        self._began = time.monotonic()
        self.result = ""
        if out.isatty():
            self._write("")

    def tick(self) -> None:
        """Show that it goes on."""
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
    """A step of a command; one that fails ends its line, so that the reason stands on its own."""
    out = out or sys.stdout
    running = Step(title, out)
    try:
        yield running
    except BaseException:
        out.write("\n" if out.isatty() else f"  {title}: not done\n")
        raise
    running.end()


def say(text: str = "") -> None:
    """One line, seen at once even when the output goes to a file."""
    print(text, flush=True)
