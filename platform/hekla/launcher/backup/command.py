"""The commands `manage.py backup FILE` and `manage.py restore FILE`."""

import argparse
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path

from hekla import __version__
from hekla.backends.durable_files import durable_files
from hekla.launcher.backup import archive, database
from hekla.launcher.embedded import Postgres
from hekla.launcher.embedded.rundir import run_dir
from hekla.launcher.embedded.running import running
from hekla.launcher.terminal import LaunchRefused, say, step
from hekla.launcher.up.home import Home
from hekla.launcher.up.tables import unknown_changes


def back_up(argv: Sequence[str]) -> int:
    """Write a backup while Hekla runs. Raises LaunchRefused."""
    options = _parser("backup", "Save everything into one file, while people go on working.").parse_args(argv)
    home, path = _home(options.data), Path(options.file)
    if path.exists() and not options.replace:
        raise LaunchRefused(f"There is a file {path} already. Choose another name, or say --replace.")
    url = os.environ.get("DATABASE_URL") or home.environment()["DATABASE_URL"]
    changes = database.changes(url)
    with tempfile.TemporaryDirectory(dir=path.absolute().parent, prefix=".hekla-backup-") as folder:
        dump = Path(folder) / archive.DUMP
        with step("saving the database"):
            database.dump(url, dump)
        manifest = archive.Manifest.of(
            dump, version=__version__, postgres=database.version(url), changes=changes, made_at=datetime.now(UTC)
        )
        key = home.path / archive.KEY
        with step("saving what pods wrote") as saving:
            durable = durable_files(home.path)
            held = key if key.is_file() else None
            count = archive.write(path, manifest, dump, key=held, files=home.path, durable=durable)
            saving.result = f"{count} files"
    say(f"\n  {path} holds all of it, {path.stat().st_size // 2**20 + 1} MiB.")
    say(_ABOUT_THE_KEY if held else _WITHOUT_THE_KEY)
    return 0


_ABOUT_THE_KEY = "  The key that seals secrets is in it: keep it as you keep a password.\n"
_WITHOUT_THE_KEY = "  HEKLA_SECRET_KEY is not in it; without that key, sealed secrets cannot be read again.\n"


def restore(argv: Sequence[str]) -> int:
    """Restore a backup. Raises LaunchRefused, for example if Hekla runs. A failed restore keeps the old database."""
    options = _parser("restore", "Bring back what `backup` saved; Hekla must not run meanwhile.").parse_args(argv)
    home = _home(options.data)
    with archive.opened(Path(options.file)) as (manifest, tar):
        _check(manifest)
        archive.check_files(tar)
        home.open()
        with home.held(), tempfile.TemporaryDirectory(dir=home.path, prefix="restoring-") as folder:
            dump = Path(folder) / archive.DUMP
            with step("checking the backup"):
                archive.take_dump(tar, manifest, dump)
            with _database(home) as url:
                _check_server(manifest, url)
                with _room(url, replace=options.replace), step("bringing the database back"):
                    database.restore(url, dump)
            _put_key(home, archive.key(tar), replace=options.replace)
            with step("bringing back what pods wrote") as putting:
                putting.result = f"{archive.take_files(tar, home.path)} files"
    (home.path / "tables").unlink(missing_ok=True)  # makes the next start check the tables
    say(f"\n  As of {manifest.made_at} all is back in {home.path}. Start it with: python3 manage.py up\n")
    return 0


def _check(manifest: archive.Manifest) -> None:
    """Raises LaunchRefused if the backup has unknown migrations of Hekla.

    Django checks the migrations of other packages at the next start.
    """
    if unknown := unknown_changes(manifest.changes):
        raise LaunchRefused(
            f"The backup was made by a newer Hekla ({manifest.version}): this one does not know {min(unknown)}. "
            "Update this Hekla first, or bring the backup back with that one."
        )


def _check_server(manifest: archive.Manifest, url: str) -> None:
    """Raises LaunchRefused if the server is older than that of the backup. Runs before anything is removed."""
    if (version := database.version(url)) < manifest.postgres:
        raise LaunchRefused(
            f"The backup was made of PostgreSQL {manifest.postgres}; this database is PostgreSQL {version}. "
            "Bring it back into one that is as new."
        )


@contextmanager
def _database(home: Home) -> Iterator[str]:
    """The URL of the target database: DATABASE_URL, or the embedded server, started for the restore."""
    if "DATABASE_URL" in os.environ:
        yield os.environ["DATABASE_URL"]
        return
    home.logs.mkdir(mode=0o700, exist_ok=True)
    server = Postgres(home.path / "postgres", run_dir(home.path))
    with (home.logs / "postgres.log").open("ab") as log, running(server, log.fileno()):
        yield server.url


def _room(url: str, *, replace: bool) -> AbstractContextManager[None]:
    """A context in which the database is empty. It deletes the old data only after the restore has succeeded.

    Raises LaunchRefused if the database is not empty and `replace` is off.
    """
    if database.is_empty(url):
        return nullcontext()
    if not replace:
        raise LaunchRefused("The database holds something already. To have it replaced by the backup, say --replace.")
    return database.set_aside(url)


def _put_key(home: Home, key: str | None, *, replace: bool) -> None:
    if key is not None and (replace or not (home.path / archive.KEY).exists()):
        home.set_secret_key(key)


def _home(data: str | None) -> Home:
    return Home(Path(os.path.abspath(data))) if data else Home.default()


def _parser(name: str, about: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(f"manage.py {name}", description=about)
    parser.add_argument("file", help="backup file, ending in .tar")
    parser.add_argument("--data", metavar="FOLDER", help="data folder (default: HEKLA_HOME, or .hekla)")
    parser.add_argument("--replace", action="store_true", help="replace existing data")
    return parser
