"""Ends the local pods of a data folder. They outlive Hekla, so they must be ended before the folder is wiped."""

import os
from pathlib import Path

from hekla.backends.local.processes import descendants, kill, process_table


def end_pods(home: Path) -> None:
    """Kill all processes of local pods of this data folder."""
    pods = f"{os.path.realpath(home)}/local/"
    of_pods = [process.pid for process in process_table() if _is_of(process.pid, pods)]
    children = [pid for shim in of_pods for pid in descendants(shim)]
    kill(of_pods)
    kill(children)


def _is_of(pid: int, pods: str) -> bool:
    """Whether the process is a shim (the folder is an argument) or a pod (the folder is its working folder)."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            arguments = file.read().split(b"\0")
        return os.readlink(f"/proc/{pid}/cwd").startswith(pods) or any(
            a.startswith(os.fsencode(pods)) for a in arguments
        )
    except OSError:
        return False
