"""Logs of all processes on the terminal, prefixed by process name, and in rotated files.

A full disk does not stop Hekla: it is reported once, and writing continues when there is space again.
"""

import logging
import sys
from collections import deque
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TextIO

_FILE_BYTES, _OLD_FILES = 4 * 1024 * 1024, 3
_HELD_LINES = 60
_LONGEST_LINE = 4000
OWN_NAME = "hekla"


class _File(RotatingFileHandler):
    """A log file that stores its last write error in `failure`."""

    failure = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record. Store the error, if any."""
        self.failure = ""
        super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002  (the name in `logging`)
        """Store the error, without a traceback per line: most likely the disk is full."""
        self.failure = str(sys.exc_info()[1])


class Journal:
    """Writes the lines of all processes. While `holding`, the terminal shows only steps, and lines are held back."""

    def __init__(self, folder: Path, terminal: TextIO | None = None) -> None:
        self._folder = folder
        self._terminal = terminal or sys.stdout
        self._files: dict[str, _File] = {}
        self._held: deque[str] = deque(maxlen=_HELD_LINES)
        self._has_reported_failure = False
        self.holding = False

    def say(self, line: str) -> None:
        """Write a line of Hekla itself."""
        self.take(OWN_NAME, line)

    def take(self, name: str, line: str, *, show: bool = True) -> None:
        """Write a line of the process `name` into its file and, if `show`, to the terminal."""
        line = line[:_LONGEST_LINE]
        self._write(name, line)
        if show:
            self._show(f"{name:<8} | {line}")

    def release(self, *, show: bool) -> None:
        """Stop holding lines back. `show`: print the held lines, to explain a failure."""
        self.holding = False
        for line in self._held:
            if show:
                self._show(line)
        self._held.clear()

    def _show(self, line: str) -> None:
        if self.holding:
            self._held.append(line)
            return
        try:
            self._terminal.write(line + "\n")
            self._terminal.flush()
        except (OSError, ValueError):  # the terminal was closed; Hekla runs until it gets a signal
            return

    def _write(self, name: str, line: str) -> None:
        file = self._files.get(name) or self._open(name)
        file.emit(logging.LogRecord(name, logging.INFO, "", 0, line, None, None))
        if file.failure and not self._has_reported_failure:
            self._show(f"{OWN_NAME:<8} | The logs cannot be written: {file.failure}. Hekla goes on without them.")
        self._has_reported_failure = bool(file.failure)

    def _open(self, name: str) -> _File:
        path = self._folder / f"{name}.log"
        file = _File(path, maxBytes=_FILE_BYTES, backupCount=_OLD_FILES, encoding="utf-8", delay=True)
        file.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        self._files[name] = file
        return file
