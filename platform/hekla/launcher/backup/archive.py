"""The backup file: a tar archive with the manifest first.

manifest.json      version, time, PostgreSQL version, migrations; size and digest of the dump
database.dump      in PostgreSQL's custom format, for `pg_restore`
secret-key         if it is in the data folder
files/…            logs and records of pods, with their paths in the data folder
"""

import hashlib
import io
import json
import os
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import IO

from hekla.launcher.terminal import LaunchRefused

FORMAT = 1
MANIFEST, DUMP, KEY = "manifest.json", "database.dump", "secret-key"
_IN_FILES = "files/"
_CHUNK = 2**20


@dataclass(frozen=True, slots=True)
class Manifest:
    """The metadata of a backup. `changes`: the applied migrations of its database, as `app.name`."""

    format: int
    version: str
    made_at: str
    postgres: int
    changes: tuple[str, ...]
    dump_bytes: int
    dump_sha256: str

    @staticmethod
    def of(dump: Path, *, version: str, postgres: int, changes: tuple[str, ...], made_at: datetime) -> "Manifest":
        """The manifest of a new dump."""
        made = made_at.astimezone(UTC).isoformat(timespec="seconds")
        return Manifest(FORMAT, version, made, postgres, changes, dump.stat().st_size, _digest(dump))


def write(path: Path, manifest: Manifest, dump: Path, *, key: Path | None, files: Path, durable: Iterator[Path]) -> int:
    """Write the backup atomically, readable only by its owner. Returns the number of pods' files in it.

    `durable`: the files below `files` to include. Files that disappear during the backup are skipped: their job was
    deleted.
    """
    draft = path.with_name(f"{path.name}.making")
    count = 0
    draft.unlink(missing_ok=True)  # never write into a file of another user
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            with tarfile.open(fileobj=out, mode="w") as tar:
                _add_text(tar, MANIFEST, json.dumps(asdict(manifest), indent=1))
                tar.add(dump, DUMP)
                if key is not None:
                    tar.add(key, KEY)
                for file in durable:
                    count += _add_file(tar, file, f"{_IN_FILES}{file.relative_to(files).as_posix()}")
            out.flush()
            os.fsync(out.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return count


@contextmanager
def opened(path: Path) -> Iterator[tuple[Manifest, tarfile.TarFile]]:
    """Open a backup for reading. Raises LaunchRefused if the file is not a backup, or truncated at its beginning."""
    try:
        with tarfile.open(path, "r:") as tar:
            yield _manifest(tar, path), tar
    except FileNotFoundError:
        raise LaunchRefused(f"There is no file {path}.") from None
    except (tarfile.TarError, EOFError, OSError) as error:
        raise LaunchRefused(f"{path} cannot be read: {error}.") from None


def take_dump(tar: tarfile.TarFile, manifest: Manifest, place: Path) -> None:
    """Write the database dump to `place`. Raises LaunchRefused if its size or digest is wrong."""
    source = _member(tar, DUMP)
    with place.open("wb") as out:
        while chunk := source.read(_CHUNK):
            out.write(chunk)
    if (place.stat().st_size, _digest(place)) != (manifest.dump_bytes, manifest.dump_sha256):
        raise LaunchRefused("The backup is damaged: its database is not the one that was backed up.")


def key(tar: tarfile.TarFile) -> str | None:
    """The secret key, or None if the backup contains none."""
    return _member(tar, KEY).read().decode("ascii") if KEY in tar.getnames() else None


def take_files(tar: tarfile.TarFile, home: Path) -> int:
    """Extract the files of pods to their paths below `home`. Returns their number."""
    members = [member for member in tar.getmembers() if member.name.startswith(_IN_FILES)]
    for member in members:
        place = home / member.name.removeprefix(_IN_FILES)
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.parent.resolve().is_relative_to(home.resolve()):
            raise LaunchRefused(f"{place.parent} is a link out of the data folder. Remove it, and try again.")
        _write(tar, member, place)
    return len(members)


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> None:
    """Write a regular file, with its time, and its permissions as far as others may only read it.

    Python 3.11.2, that of Debian 12, cannot extract with tarfile's own filter for data.
    """
    place.unlink(missing_ok=True)  # a link would be followed
    with _member(tar, member) as source, place.open("wb") as out:
        shutil.copyfileobj(source, out, _CHUNK)
    place.chmod(member.mode & 0o755 | 0o600)
    os.utime(place, (member.mtime, member.mtime))


def check_files(tar: tarfile.TarFile) -> None:
    """Raises LaunchRefused if a member is not a regular file, or its path leads outside the data folder."""
    for member in tar.getmembers():
        path = PurePosixPath(member.name.removeprefix(_IN_FILES))
        if not member.isfile() or path.is_absolute() or ".." in path.parts:
            raise LaunchRefused(f"The backup holds something that no Hekla put there: {member.name[:200]}.")


def _manifest(tar: tarfile.TarFile, path: Path) -> Manifest:
    try:
        facts = json.loads(_member(tar, MANIFEST).read())
        if facts.get("format") != FORMAT:
            version = facts.get("version", "?")
            raise LaunchRefused(f"{path} is in a format that this Hekla does not know (made by {version}).")
        return Manifest(**{**facts, "changes": tuple(facts["changes"])})
    except (ValueError, TypeError, KeyError, AttributeError):
        raise LaunchRefused(f"{path} is no backup of Hekla.") from None


def _member(tar: tarfile.TarFile, name: str | tarfile.TarInfo) -> IO[bytes]:
    try:
        found = tar.extractfile(name)
    except KeyError:
        found = None
    if found is None:
        raise LaunchRefused(f"This is no backup of Hekla, or only a part of one: it holds no {name}.")
    return found


def _add_text(tar: tarfile.TarFile, name: str, text: str) -> None:
    data = text.encode()
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(data), 0o600
    tar.addfile(member, io.BytesIO(data))


def _add_file(tar: tarfile.TarFile, path: Path, name: str) -> bool:
    """Add a file; False if it does not exist any more. A growing log is added up to its size at the start."""
    try:
        with path.open("rb") as file:
            member = tar.gettarinfo(arcname=name, fileobj=file)
            tar.addfile(member, file)
    except FileNotFoundError:
        return False
    return True


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
