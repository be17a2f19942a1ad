"""Programs that are built once from a Go module and cached outside the checkout.

No package index has them, and container images need a container runtime; Go's module proxy serves their source
to everyone. `go.sum` pins all sources.
"""

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hekla.launcher.embedded.child import spawn

BUILD_SECONDS = 25 * 60.0
FILES, _LOCK = "files", "lock"


class NoBinaries(Exception):
    """The programs are not available; the message is the reason."""


@dataclass(frozen=True)
class GoPrograms:
    """Programs of one `go.mod`.

    `name`: their name in messages. `module`: the folder with `go.mod` and `go.sum`. `cache`: their folder in the
    user's cache. `packages`: the Go package of each program. `ldflags`: for the linker. `extra_files`: a Go module and
    a folder of it, whose files are copied into `files` beside the programs.
    """

    name: str
    module: Path
    cache: str
    packages: Mapping[str, str]
    ldflags: str = "-s -w"
    extra_files: tuple[str, str] | None = None

    def built(self) -> Path:
        """The folder with the programs, which are built if they are missing. Raises NoBinaries."""
        limit = time.monotonic() + BUILD_SECONDS
        root = _caches() / self.cache
        root.mkdir(parents=True, exist_ok=True)
        with self._locked(root / _LOCK, limit):
            built = root / self._fingerprint(self._go_version())
            if not built.is_dir():
                self._make(root, built, limit)
                _remove_old_builds(root, built)
        return built

    def _make(self, root: Path, built: Path, limit: float) -> None:
        _print(f"building {self.name} for the tests, once; some minutes")
        began = time.monotonic()
        self._build(root, built, limit)
        _print(f"built in {time.monotonic() - began:.0f} s; kept in {built}")

    @contextlib.contextmanager
    def _locked(self, path: Path, limit: float) -> Iterator[None]:
        """A lock, so that parallel test runs wait for the first one's build."""
        with path.open("w") as file:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    self._check_time(limit)
                    time.sleep(0.5)
            yield

    def _go_version(self) -> str:
        if shutil.which("go") is None:
            raise self._none("no Go on this machine: see https://go.dev/doc/install")
        version = subprocess.run(
            ["go", "env", "GOVERSION"], cwd=self.module, env=_environment(), capture_output=True, text=True, check=False
        )
        if version.returncode != 0:  # an older Go that cannot fetch the one in go.mod
            raise self._none(_too_old(version.stderr))
        return version.stdout.strip()

    def _fingerprint(self, go_version: str) -> str:
        files = [self.module / "go.mod", self.module / "go.sum"]
        parts = [*(file.read_bytes() for file in files), go_version.encode()]
        return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]

    def _build(self, root: Path, built: Path, limit: float) -> None:
        """Fetch and compile, then rename the folder, so that it is always complete."""
        partial = Path(tempfile.mkdtemp(prefix="making-", dir=root))
        try:
            self._compile(partial, limit)
            partial.rename(built)
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    def _compile(self, folder: Path, limit: float) -> None:
        log = folder / "build.log"
        if self._go(["list", "-deps", *self.packages.values()], log, limit) != 0:
            raise self._none(_why_not_listed(log))
        for name, package in self.packages.items():
            target = ["-o", str(folder / name), package]
            if self._go(["build", "-trimpath", f"-ldflags={self.ldflags}", *target], log, limit) != 0:
                raise self._none(f"{name} does not build: {_last_line(log.read_text())}")
        if self.extra_files:
            self._copy(*self.extra_files, folder / FILES)

    def _copy(self, module: str, subfolder: str, folder: Path) -> None:
        command = ["go", "list", "-m", "-f", "{{.Dir}}", module]
        source = subprocess.run(
            command, cwd=self.module, env=_environment(), capture_output=True, text=True, check=True
        ).stdout.strip()
        folder.mkdir()
        for file in (Path(source) / subfolder).iterdir():
            shutil.copyfile(file, folder / file.name)

    def _go(self, arguments: Sequence[str], log: Path, limit: float) -> int:
        """The exit code of one `go` command; its output is appended to `log`."""
        self._check_time(limit)
        with log.open("ab") as output:
            process = spawn(["go", *arguments], output=output.fileno(), env=_environment(), folder=self.module)
        try:
            return process.wait(timeout=max(0.0, limit - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise self._none(_too_long()) from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)  # including its compilers
                process.wait()

    def _check_time(self, limit: float) -> None:
        if time.monotonic() > limit:
            raise self._none(_too_long())

    def _none(self, reason: str) -> NoBinaries:
        return NoBinaries(f"no {self.name}: {reason}")


def _caches() -> Path:
    home = os.environ.get("XDG_CACHE_HOME")
    return Path(home) if home else Path.home() / ".cache"


def _print(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")
    sys.stderr.flush()


def _too_old(error: str) -> str:
    return f"no Go on this machine that is new enough: {_last_line(error)}"


def _too_long() -> str:
    return f"building it takes longer than {BUILD_SECONDS / 60:.0f} minutes"


def _why_not_listed(log: Path) -> str:
    output = log.read_text()
    if "requires go >=" in output:
        return _too_old(output)
    if re.search(r"go\.sum|updates to go\.mod|SECURITY ERROR", output):
        return f"go.mod and go.sum do not fit each other: {_last_line(output)}"
    return f"the Go modules cannot be had: {_last_line(output)}"


def _environment() -> Mapping[str, str]:
    """The caller's environment, with reproducible settings: cgo would need a C compiler and depend on this libc."""
    return os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly", "GOWORK": "off"}


def _last_line(text: str) -> str:
    return (text.strip() or "no reason given").splitlines()[-1]


def _remove_old_builds(root: Path, built: Path) -> None:
    """Remove other versions and leftovers of interrupted builds."""
    for path in root.iterdir():
        if path.is_dir() and path != built:
            shutil.rmtree(path, ignore_errors=True)
