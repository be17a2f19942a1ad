"""Which folder a container has at a mount: a pod can put a link in the place of a folder of its volume at any time.

Standard library only.
"""

import contextlib
import os
import re
from collections import Counter

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
Identity = tuple[int, int]
"""Device and number of a folder."""
_OCTAL = re.compile(r"\\([0-7]{3})")
_MOUNT_POINT = 4


def identity(root: str, below: str) -> Identity:
    """The folder `below` in `root`, part by part. Raises OSError if one of them is a link or no folder."""
    place = os.open(root, FOLDER)
    try:
        for part in below.split("/"):
            inner = os.open(part, FOLDER, dir_fd=place)
            os.close(place)
            place = inner
        found = os.fstat(place)
    finally:
        os.close(place)
    return found.st_dev, found.st_ino


def of_process(pid: int) -> Counter[Identity]:
    """What is mounted for this process, as it sees it. Raises OSError if there is no such process."""
    found: Counter[Identity] = Counter()
    with open(f"/proc/{pid}/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            point = _OCTAL.sub(lambda code: chr(int(code[1], 8)), line.split(" ")[_MOUNT_POINT])
            with contextlib.suppress(OSError):  # hidden by a later mount
                mounted = os.lstat(f"/proc/{pid}/root{point}")
                found[mounted.st_dev, mounted.st_ino] += 1
    return found
