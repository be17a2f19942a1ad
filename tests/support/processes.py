"""What `manage.py up` starts each process with: whatever else starts them is held to that."""

from pathlib import Path
from unittest.mock import patch

from hekla.project.up import roles
from hekla.project.up.child import Role

PROCESSES = ["web", "control", "default", "beat"]


def commands_of_up() -> dict[str, list[str]]:
    """The words after `python -m`, by the name of the process."""
    seen: dict[str, list[str]] = {}

    def keep(name: str, argv: list[str], _env: object, **_extra: object) -> Role:
        seen[name] = argv
        return Role(name, lambda _output: None, stop_stage=0)

    with patch.object(roles, "_python", keep):
        roles.web(roles.Address("127.0.0.1", 8000), {})
        roles.workers({})
        roles.beat(Path("/var/lib/hekla/beat"), {})
    return seen
