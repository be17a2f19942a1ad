"""The virtual environment next to manage.py: created once, updated when the lock file changes, and entered.

A stamp file lists the installed lock files. It is written last, so an interrupted installation is repeated. A file
lock serializes concurrent starts.
"""

import fcntl
import hashlib
import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from hekla.launcher.terminal import LaunchRefused, say, step
from hekla.lib.checkout import CHECKOUT

_CONTAINED = {"run": ("run",), "test": ("test", "run")}

_CONSOLE_SCRIPT = """\
#!/bin/sh
'''exec' {python} "$0" "$@"
' '''
import sys

from hekla.cli.main import main

sys.argv[0] = "hekla"
sys.exit(main())
"""


@dataclass(frozen=True)
class VirtualEnvironment:
    """A virtual environment in `folder`, for the code in `checkout`."""

    folder: Path
    checkout: Path = CHECKOUT

    @classmethod
    def of_this_checkout(cls) -> "VirtualEnvironment":
        """The environment at HEKLA_VENV, by default `.venv` next to manage.py."""
        return cls(Path(os.path.abspath(os.environ.get("HEKLA_VENV") or CHECKOUT / ".venv")))

    @property
    def python(self) -> Path:
        """The path of its interpreter."""
        return self.folder / "bin" / "python"

    def enter(self, wanted: str) -> None:
        """Run this command inside it, with the packages of the set `wanted` ("run" or "test"). Raises LaunchRefused.

        Replaces the process unless it runs inside the environment already.
        """
        if not self.is_filled(wanted):
            self._fill(wanted)
        if Path(sys.prefix).resolve() != self.folder.resolve():
            self._go_on_inside()

    def is_filled(self, wanted: str) -> bool:
        """Whether the set is installed as in the present lock file."""
        return self._stamp(wanted) in self._recorded() and os.access(self.python, os.X_OK)

    def requirements(self, name: str) -> Path:
        """The lock file of a set."""
        return self.checkout / "deploy" / "requirements" / f"{name}.txt"

    def _fill(self, wanted: str) -> None:
        from hekla.launcher.bootstrap import installer  # noqa: PLC0415  (each start of Hekla imports this module twice)

        with self._alone():
            if self.is_filled(wanted):  # another process did it while this one waited
                return
            say("Hekla installs what it needs. This happens once; later starts skip it.")
            self._make()
            installer.install(self.python, self.requirements(wanted))
            self._link_code()
            installer.compile_code(self.python, self.checkout / "platform" / "hekla")
            installer.make_database_template(self.python, self.checkout)
            for name in _CONTAINED[wanted]:
                self._record(name)

    def _make(self) -> None:
        """Create the environment if it is missing, or if its Python was removed."""
        if os.access(self.python, os.X_OK) and next(self.folder.glob("lib/python3*/site-packages"), None):
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        with step(f"making a Python environment in {self.folder}"):
            from hekla.launcher.bootstrap import installer  # noqa: PLC0415  (as in `_fill`)

            installer.make_environment(self.folder)

    def _link_code(self) -> None:
        """Add the code to the import path, and the command `hekla`, without building a package."""
        packages = next(self.folder.glob("lib/python3*/site-packages"))
        (packages / "hekla-checkout.pth").write_text(f"{self.checkout / 'platform'}\n", encoding="utf-8")
        script = self.folder / "bin" / "hekla"
        script.write_text(_CONSOLE_SCRIPT.format(python=shlex.quote(str(self.python))), encoding="utf-8")
        script.chmod(0o755)

    def _go_on_inside(self) -> NoReturn:
        manage = str(self.checkout / "manage.py")
        os.execv(self.python, [str(self.python), manage, *sys.argv[1:]])  # noqa: S606  (the same command, no shell)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        path = self.folder.with_name(self.folder.name + ".lock")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = path.open("w")
        except OSError as error:
            raise LaunchRefused(
                f"Hekla cannot write in {path.parent} ({error.strerror}), where its packages are to be installed. "
                "Run it as the owner of that folder, or name a folder of your own in HEKLA_VENV."
            ) from None
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("Another start of Hekla is installing the packages: waiting for it.")
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    # Stamps: one line per set, `name digest folder checkout`. A moved folder or a changed lock file no longer matches.

    @property
    def _stamp_file(self) -> Path:
        return self.folder / "hekla-installed"

    def _stamp(self, name: str) -> str:
        digest = hashlib.sha256(self.requirements(name).read_bytes()).hexdigest()
        return f"{name} {digest} {self.folder} {self.checkout}"

    def _recorded(self) -> set[str]:
        try:
            return set(self._stamp_file.read_text(encoding="utf-8").splitlines())
        except OSError:
            return set()

    def _record(self, name: str) -> None:
        others = {line for line in self._recorded() if line.split(" ", 1)[0] != name}
        lines = sorted({*others, self._stamp(name)})
        written = self._stamp_file.with_suffix(".new")
        written.write_text("\n".join(lines) + "\n", encoding="utf-8")
        written.replace(self._stamp_file)
