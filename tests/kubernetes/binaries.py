"""The programs of a Kubernetes control plane, built from `go.mod` once and kept outside of the checkout.

No package index carries them and container images need a container runtime, while Go's module proxy serves their
source to everybody. What `go.sum` does not vouch for is not built.
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
from pathlib import Path

from hekla.project.embedded.child import spawn

HERE = Path(__file__).resolve().parent
PACKAGES = {
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
    "kwok": "sigs.k8s.io/kwok/cmd/kwok",
    "etcd": "go.etcd.io/etcd/server/v3",
}
BUILD_SECONDS = 25 * 60.0
_LOCK = "lock"


class NoBinaries(Exception):
    """There are no programs to run, and why."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"no Kubernetes control plane: {reason}")


def binaries() -> Path:
    """The folder with every program of PACKAGES; built where it is not there yet. Raises NoBinaries."""
    limit = time.monotonic() + BUILD_SECONDS
    root = _cache()
    root.mkdir(parents=True, exist_ok=True)
    with _locked(root / _LOCK, limit):
        built = root / _fingerprint(_go_version())
        if not built.is_dir():
            _say("building a Kubernetes control plane for the tests, once; some minutes")
            began = time.monotonic()
            _build(root, built, limit)
            _say(f"built in {time.monotonic() - began:.0f} s; kept in {built}")
            _remove_others(root, built)
    return built


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "hekla-kubernetes"


def _say(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")
    sys.stderr.flush()


@contextlib.contextmanager
def _locked(path: Path, limit: float) -> Iterator[None]:
    """Only one run at a time looks and builds; another waits for what the first one makes."""
    with path.open("w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                _check_time(limit)
                time.sleep(0.5)
        yield


def _go_version() -> str:
    if shutil.which("go") is None:
        raise NoBinaries("no Go on this machine: see https://go.dev/doc/install")
    told = subprocess.run(
        ["go", "env", "GOVERSION"], cwd=HERE, env=_environment(), capture_output=True, text=True, check=False
    )
    if told.returncode != 0:  # an older Go that cannot fetch the one that go.mod asks for
        raise NoBinaries(_too_old(told.stderr))
    return told.stdout.strip()


def _too_old(told: str) -> str:
    return f"no Go on this machine that is new enough: {_last_line(told)}"


def _fingerprint(go_version: str) -> str:
    parts = (HERE / "go.mod").read_bytes(), (HERE / "go.sum").read_bytes(), go_version.encode()
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def _build(root: Path, built: Path, limit: float) -> None:
    """Fetch, compile, and put the folder in place by one rename, so that nobody meets a half of it."""
    making = Path(tempfile.mkdtemp(prefix="making-", dir=root))
    try:
        _compile(making, limit)
        making.rename(built)
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _compile(folder: Path, limit: float) -> None:
    log = folder / "build.log"
    if _go(["list", "-deps", *PACKAGES.values()], log, limit) != 0:
        raise NoBinaries(_why_not_listed(log))
    for name, package in PACKAGES.items():
        target = ["-o", str(folder / name), package]
        if _go(["build", "-trimpath", f"-ldflags={_ldflags()}", *target], log, limit) != 0:
            raise NoBinaries(f"{name} does not build: {_last_line(log.read_text())}")


def _why_not_listed(log: Path) -> str:
    told = log.read_text()
    if "requires go >=" in told:
        return _too_old(told)
    if re.search(r"go\.sum|updates to go\.mod|SECURITY ERROR", told):
        return f"go.mod and go.sum do not fit each other: {_last_line(told)}"
    return f"the Go modules cannot be had: {_last_line(told)}"


def _go(arguments: Sequence[str], log: Path, limit: float) -> int:
    """The exit code of one `go` command; what it says is added to `log`."""
    _check_time(limit)
    with log.open("ab") as output:
        process = spawn(["go", *arguments], output=output.fileno(), env=_environment(), folder=HERE)
    try:
        return process.wait(timeout=max(0.0, limit - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise NoBinaries(_too_long()) from None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)  # with the compilers that it started
            process.wait()


def _check_time(limit: float) -> None:
    if time.monotonic() > limit:
        raise NoBinaries(_too_long())


def _too_long() -> str:
    return f"building it takes longer than {BUILD_SECONDS / 60:.0f} minutes"


def _environment() -> Mapping[str, str]:
    """That of the caller, without what would change the outcome; C would need a compiler and tie them to this libc."""
    return os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly", "GOWORK": "off"}


def _ldflags() -> str:
    """Without symbols, and with the version that a release of Kubernetes would report."""
    found = re.search(r"k8s\.io/kubernetes (v(\d+)\.(\d+)\S*)", (HERE / "go.mod").read_text())
    if found is None:
        raise NoBinaries("go.mod does not name k8s.io/kubernetes")
    values = {"gitVersion": found[1], "gitMajor": found[2], "gitMinor": found[3]}
    return "-s -w " + " ".join(f"-X k8s.io/component-base/version.{name}={value}" for name, value in values.items())


def _last_line(text: str) -> str:
    return (text.strip() or "no reason given").splitlines()[-1]


def _remove_others(root: Path, built: Path) -> None:
    """Other versions, and what builds that were cut off left."""
    for path in root.iterdir():
        if path.is_dir() and path != built:
            shutil.rmtree(path, ignore_errors=True)
