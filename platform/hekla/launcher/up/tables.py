"""Whether the database has the tables that this code wants. To ask Django costs two seconds; to ask a file, none."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from hekla.lib.checkout import CHECKOUT

OTHER_VERSION_EXIT_CODE = 3
"""Of `manage.py migrate`, where this version cannot bring the database up to date."""


def fingerprint(database_url: str) -> str:
    """Changes with any migration of ours, with the locked packages (they bring migrations too), and the database."""
    digest = hashlib.sha256(database_url.encode())
    for path in [*_migrations(), CHECKOUT / "deploy" / "requirements" / "run.txt"]:
        digest.update(str(path.relative_to(CHECKOUT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def known_changes() -> frozenset[str]:
    """The migrations of this code, as `app.name`."""
    return frozenset(f"{path.parents[1].name}.{path.stem}" for path in _migrations() if path.stem != "__init__")


def unknown_changes(applied: Iterable[str]) -> list[str]:
    """Those of these migrations, in order, that are of our apps and not in this code."""
    known = known_changes()
    apps = {name.partition(".")[0] for name in known}
    return [name for name in applied if name.partition(".")[0] in apps and name not in known]


def _migrations() -> list[Path]:
    return sorted((CHECKOUT / "platform" / "hekla").glob("**/migrations/*.py"))


class TablesStamp:
    """The fingerprint of what the database was last brought to."""

    def __init__(self, path: Path, database_url: str) -> None:
        self._path = path
        self._wanted = fingerprint(database_url)

    def matches(self) -> bool:
        """Whether there is nothing to do."""
        try:
            return self._path.read_text(encoding="ascii") == self._wanted
        except (OSError, UnicodeDecodeError):
            return False

    def write(self) -> None:
        """Everything was done."""
        self._path.write_text(self._wanted, encoding="ascii")
