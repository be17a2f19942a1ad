"""Sets the title of a process in process lists (`ps`, `top`). Linux only; elsewhere it does nothing.

/proc reads the command line of a process from the memory of that process. The title replaces it there.
"""

import ctypes
import sys

_PR_SET_NAME = 15
_LONGEST_NAME = 15
_ARGUMENTS = slice(45, 47)  # fields of /proc/self/stat after the name: start and end of the arguments


def set_title(title: str) -> None:
    """Set the title of this process, cut to the length of its original command line."""
    if sys.platform != "linux":
        return
    text = title.encode()
    ctypes.CDLL(None).prctl(_PR_SET_NAME, text[:_LONGEST_NAME])
    with open("/proc/self/stat", encoding="utf-8", errors="replace") as file:
        begin, end = map(int, file.read().rpartition(")")[2].split()[_ARGUMENTS])
    room = end - begin
    if begin and room > 1:
        ctypes.memmove(begin, text[: room - 1].ljust(room, b"\0"), room)
