"""Commands as one line of a shell, for people who run them again."""

import re
import shlex

MAX_LINE = 100_000
"""Linux limits one variable of the environment to 128 KiB."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def command_line(command: tuple[str, ...]) -> str:
    """The command as one line that bash reads as these words; empty if it is too long to be one."""
    line = " ".join(map(_quoted, command))
    return line if len(line.encode(errors="replace")) <= MAX_LINE else ""


def _quoted(word: str) -> str:
    """A word; with line breaks or other control codes as `$'…'`, because a line of the history has none."""
    if not _CONTROL.search(word):
        return shlex.quote(word)
    escaped = word.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\t", "\\t")
    return "$'" + _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", escaped) + "'"
