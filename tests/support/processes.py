"""What `manage.py up` starts each process with: whatever else starts them is held to that."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from hekla.launcher.up import roles
from hekla.launcher.up.child import Process
from hekla.launcher.up.prefork import Copy, Launcher

PROCESSES = ["web", "control", "default", "beat"]


class _Recorder(Launcher):
    """Keeps what it was to start, and starts nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[str, list[str]] = {}

    def start(self, name: str, argv: Sequence[str], env: Mapping[str, str], output: int) -> Process:
        self.seen[name] = list(argv)
        return Copy(0)


def commands_of_up() -> dict[str, list[str]]:
    """The words after `python -m`, by the name of the process."""
    recorder = _Recorder()
    web = roles.web(roles.Address("127.0.0.1", 8000), {}, recorder)
    beat = roles.beat(Path("/var/lib/hekla/beat"), {}, recorder)
    for role in (web, *roles.workers({}, recorder), beat):
        role.start(0)
    return recorder.seen
