"""The pods of a data folder, which outlive everything else of Hekla: whoever wipes the folder must end them first."""

import os
from pathlib import Path

from hekla.backends.local.processes import descendants, kill, process_table


def end_pods(home: Path) -> None:
    """End every process that a local pod of this data folder is made of."""
    pods = f"{os.path.realpath(home)}/local/"
    of_pods = [process.pid for process in process_table() if _is_of(process.pid, pods)]
    children = [pid for shim in of_pods for pid in descendants(shim)]
    kill(of_pods)
    kill(children)


def _is_of(pid: int, pods: str) -> bool:
    """A shim is told its folder; a pod works in it."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            arguments = file.read().split(b"\0")
        return os.readlink(f"/proc/{pid}/cwd").startswith(pods) or any(
            a.startswith(os.fsencode(pods)) for a in arguments
        )
    except OSError:
        return False
