"""What a data folder holds, so that more days can be added to it later, and the dashboards be measured again."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Self

from hekla.bench.operations.size import OperationsSize
from hekla.launcher.terminal import LaunchRefused

_NAME, _POSTGRES = "operations.json", "postgres"


@dataclass(slots=True)
class FilledDays:
    """The simulated day, and how many days have measures so far.

    `end`: of that day. `has_readers`: what readers of logs and people leave about its last pods is stored, too.
    `seconds`: what each stage took. `hours`: how many were computed for the days before.
    `roll_up`: the costs of rolling up, by hour.
    """

    size: OperationsSize
    end: datetime
    days: int = 0
    has_readers: bool = False
    hours: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    roll_up: list[dict[str, float]] = field(default_factory=list)

    @property
    def begin(self) -> datetime:
        return self.end - timedelta(minutes=self.size.minutes)

    @classmethod
    def read(cls, folder: Path, size: OperationsSize) -> Self | None:
        """What an earlier run left in this folder; None: nothing. Raises LaunchRefused if it is something else."""
        path = folder / _NAME
        if not path.exists():
            if (folder / _POSTGRES).exists():
                raise LaunchRefused(f"{folder} has other data, or a day that was interrupted. Choose another folder.")
            return None
        found = json.loads(path.read_text(encoding="utf-8"))
        known = OperationsSize(**found.pop("size"))
        if _shape(known) != _shape(size):
            raise LaunchRefused(f"{folder} has days of another size: {_options(known)}. Choose another folder.")
        return cls(size=size, end=datetime.fromisoformat(found.pop("end")), **found)

    def write(self, folder: Path) -> None:
        """Store it there."""
        new = folder / f"{_NAME}.new"
        new.write_text(json.dumps(asdict(self) | {"end": self.end.isoformat()}), encoding="utf-8")
        new.replace(folder / _NAME)


def _shape(size: OperationsSize) -> Mapping[str, Any]:
    """What all days have in common."""
    return asdict(size) | {"days": 0}


def _options(size: OperationsSize) -> str:
    return " ".join(f"--{name.replace('_', '-')} {value}" for name, value in asdict(size).items() if name != "days")
