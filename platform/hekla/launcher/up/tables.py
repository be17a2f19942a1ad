"""Whether the database has the tables of this code. A stamp file answers at once; Django takes two seconds."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from hekla.lib.checkout import CHECKOUT

OTHER_VERSION_EXIT_CODE = 3
"""Exit code of `manage.py migrate` if this version cannot upgrade the database."""


def fingerprint(database_url: str) -> str:
    """A digest of Hekla's migrations, the locked packages (they have migrations too), and the database URL."""
    digest = hashlib.sha256(database_url.encode())
    for path in [*_migrations(), CHECKOUT / "deploy" / "requirements" / "run.txt"]:
        digest.update(str(path.relative_to(CHECKOUT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def known_changes() -> frozenset[str]:
    """Hekla's migrations in this code, as `app.name`."""
    return frozenset(f"{path.parents[1].name}.{path.stem}" for path in _migrations() if path.stem != "__init__")


def unknown_changes(applied: Iterable[str]) -> list[str]:
    """The applied migrations of Hekla's apps that are not in this code, in the same order."""
    known = known_changes()
    apps = {name.partition(".")[0] for name in known}
    return [name for name in applied if name.partition(".")[0] in apps and name not in known]


def _migrations() -> list[Path]:
    return sorted((CHECKOUT / "platform" / "hekla").glob("**/migrations/*.py"))


class TablesStamp:
    """A file with the fingerprint of the last migration of the database."""

    def __init__(self, path: Path, database_url: str) -> None:
        self._path = path
        self._wanted = fingerprint(database_url)

    def matches(self) -> bool:
        """Whether the tables are up to date."""
        try:
            return self._path.read_text(encoding="ascii") == self._wanted
        except (OSError, UnicodeDecodeError):
            return False

    def write(self) -> None:
        """Record that the tables are up to date."""
        self._path.write_text(self._wanted, encoding="ascii")
