"""The data folder of one Hekla. Only one Hekla can run on it, and only a folder made by Hekla is ever wiped."""

import fcntl
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hekla.launcher.embedded import Postgres, Valkey
from hekla.launcher.embedded.rundir import socket_folder
from hekla.launcher.terminal import LaunchRefused
from hekla.lib.checkout import CHECKOUT

LEAST_FREE_BYTES = 500 * 1024**2
_MARK = "hekla-data"
_MARK_TEXT = "Hekla keeps its data in this folder. Without this file Hekla refuses to use the folder.\n"


@dataclass(frozen=True)
class Home:
    """A data folder, which may not exist yet."""

    path: Path

    @classmethod
    def default(cls) -> "Home":
        """The folder in HEKLA_HOME, by default `.hekla` in the checkout."""
        return cls(Path(os.path.abspath(os.environ.get("HEKLA_HOME") or CHECKOUT / ".hekla")))

    @property
    def logs(self) -> Path:
        """The folder of the log files."""
        return self.path / "logs"

    @property
    def is_ours(self) -> bool:
        """Whether Hekla created the folder."""
        return (self.path / _MARK).is_file()

    def open(self) -> None:
        """Create the folder, or check that Hekla created it. Raises LaunchRefused."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self.is_ours:
                self._claim()
            self.logs.mkdir(mode=0o700, exist_ok=True)
        except FileExistsError:
            raise LaunchRefused(f"{self.path} is not a folder. Choose another place with --data.") from None
        except OSError as error:
            raise LaunchRefused(
                f"Hekla cannot keep its data in {self.path}: {error.strerror}. Choose another folder with --data."
            ) from None

    def check_space(self) -> None:
        """Raises LaunchRefused if the disk is nearly full."""
        free = shutil.disk_usage(self.path).free
        if free < LEAST_FREE_BYTES:
            raise LaunchRefused(
                f"The disk that holds {self.path} has {free // 1024**2} MB left, and Hekla wants at least "
                f"{LEAST_FREE_BYTES // 1024**2} MB to start. Make room, or choose a folder elsewhere with --data."
            )

    @contextmanager
    def held(self, url: str = "") -> Iterator[None]:
        """Lock the folder for this process. The system releases the lock, however the process ends.

        `url`: the URL of the console that runs on it; empty during a restore. Raises LaunchRefused if it is locked.
        """
        with (self.path / "lock").open("a+", encoding="utf-8") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.seek(0)
                raise LaunchRefused(_already_running(lock.read())) from None
            lock.truncate(0)
            lock.write(json.dumps({"pid": os.getpid(), "url": url}))
            lock.flush()
            yield

    def wipe(self) -> None:
        """Delete everything in it except the lock and the mark. Raises LaunchRefused if Hekla did not create it."""
        if not self.is_ours:
            raise LaunchRefused(f"{self.path} was not made by Hekla: nothing in it was touched.")
        for entry in self.path.iterdir():
            if entry.name in {"lock", _MARK}:
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()

    def secret_key(self) -> str:
        """The key that signs cookies and links. Created on first use, readable only by the owner."""
        if not self._key.exists():
            self.set_secret_key(secrets.token_urlsafe(48))
        return self._key.read_text(encoding="ascii").strip()

    def set_secret_key(self, key: str) -> None:
        """Store this key."""
        written = self._key.with_suffix(".new")
        with os.fdopen(os.open(written, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(key)
        written.replace(self._key)

    def environment(self) -> Mapping[str, str]:
        """The environment variables that connect Django to the Hekla that runs on this folder."""
        run = socket_folder(self.path)
        known = self._key.exists()
        return {
            "DJANGO_SETTINGS_MODULE": "hekla.project.settings",
            "HEKLA_HOME": str(self.path),
            "HEKLA_SECRET_KEY": self.secret_key() if known else secrets.token_urlsafe(48),
            "DATABASE_URL": Postgres.url_at(run),
            "VALKEY_URL": Valkey.url_at(run),
        }

    @property
    def _key(self) -> Path:
        return self.path / "secret-key"

    def _claim(self) -> None:
        if any(entry.name != "lock" for entry in self.path.iterdir()):
            raise LaunchRefused(
                f"{self.path} holds something that is not Hekla's. Choose an empty or a new folder with --data."
            )
        self.path.chmod(0o700)
        (self.path / _MARK).write_text(_MARK_TEXT, encoding="utf-8")


def _already_running(holder_facts: str) -> str:
    try:
        holder = json.loads(holder_facts)
        if not holder["url"]:
            return f"This data folder is being restored from a backup (process {holder['pid']})."
        return f"Hekla is already running at {holder['url']} (process {holder['pid']})."
    except (ValueError, KeyError, TypeError):
        return "Hekla is already running on this data folder."
