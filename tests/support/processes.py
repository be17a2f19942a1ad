"""The commands of the processes of `manage.py up`, for comparison with other ways to start them."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from hekla.launcher.up import roles
from hekla.launcher.up.child import Process
from hekla.launcher.up.prefork import Copy, Launcher

PROCESSES = ["web", "control", "default", "beat"]


class _Recorder(Launcher):
    """Records the processes to start, and starts none."""

    def __init__(self) -> None:
        super().__init__()
        self.recorded: dict[str, list[str]] = {}

    def start(
        self, name: str, argv: Sequence[str], env: Mapping[str, str], output: int, inherited: Collection[int] = ()
    ) -> Process:
        self.recorded[name] = list(argv)
        return Copy(0)


def commands_of_up() -> dict[str, list[str]]:
    """The arguments after `python -m`, by process."""
    recorder = _Recorder()
    web = roles.web(roles.Address("127.0.0.1", 8000), {}, recorder)
    beat = roles.beat(Path("/var/lib/hekla/beat"), {}, recorder)
    for role in (web, *roles.workers({}, recorder), beat):
        role.start(0)
    return recorder.recorded
