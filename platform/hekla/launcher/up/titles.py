"""What a process is called in lists of processes (`ps`, `top`). Linux only; elsewhere nothing is changed.

The words that a process was started with lie in its own memory, where /proc looks for them. There they are replaced.
"""

import ctypes
import sys

_PR_SET_NAME = 15
_LONGEST_NAME = 15
_ARGUMENTS = slice(45, 47)  # of /proc/self/stat, after the name: where they begin and end


def set_title(title: str) -> None:
    """Call this process so. What is longer than the words that it was started with is cut."""
    if sys.platform != "linux":
        return
    text = title.encode()
    ctypes.CDLL(None).prctl(_PR_SET_NAME, text[:_LONGEST_NAME])
    with open("/proc/self/stat", encoding="utf-8", errors="replace") as file:
        begin, end = map(int, file.read().rpartition(")")[2].split()[_ARGUMENTS])
    room = end - begin
    if begin and room > 1:
        ctypes.memmove(begin, text[: room - 1].ljust(room, b"\0"), room)
