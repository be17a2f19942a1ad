"""A real Podman with runc for tests: its API at a socket, its own images, and nothing of a Podman of the machine.

Without root, its programs are in their places already: see `rootless`.
"""

import io
import os
import shutil
import signal
import socket
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from hekla.backends.local.containers.engine import Engine, EngineError
from hekla.launcher.embedded.child import spawn

IMAGE = "localhost/box:1"
READY_WITHIN_SECONDS = 60.0
_DOCKERFILE = b'FROM scratch\nADD root.tar /\nENV PATH=/bin FLAVOUR=box\nUSER 1000\nCMD ["/bin/sh"]\n'
_USERS = b"root:x:0:0:root:/:/bin/sh\nbox:x:1000:1000:box:/:/bin/sh\n"
_SETTINGS = {
    "containers.conf": (
        '[containers]\ndefault_ulimits = []\n[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\n'
        'events_logger = "none"\nlock_type = "file"\n'
    ),
    "storage.conf": '[storage]\ndriver = "vfs"\ngraphroot = "{home}/graph"\nrunroot = "{home}/run"\n',
    "registries.conf": '[[registry]]\nlocation = "127.0.0.1"\ninsecure = true\n',
    "policy.json": '{{"default": [{{"type": "insecureAcceptAnything"}}]}}',
}
_FOLDER = ".config/containers"
"""Where Podman without root looks for its settings. With root, the environment names them."""
_VARIABLES = {
    "CONTAINERS_CONF": "containers.conf",
    "CONTAINERS_STORAGE_CONF": "storage.conf",
    "CONTAINERS_REGISTRIES_CONF": "registries.conf",
}
_AS_ROOT = ["unshare", "--mount", "--propagation", "private", "sh", "-c"]
_MOUNT = """
mount -t overlay overlay -o lowerdir={programs}/usr:/usr /usr &&
mkdir -p {home}/system && mount --bind {home}/system /run && mount -t tmpfs tmpfs /dev/shm &&
{{ test ! -e /usr/bin/dpkg-query || mount --bind /usr/bin/false /usr/bin/dpkg-query; }} &&
"""
"""Podman asks dpkg-query for the packages of its programs, several times for each request of its information."""
_START = "exec podman system service -t 0 unix://{home}/podman.sock"


class Podman:
    """One server. `programs`: the folder with its packages."""

    def __init__(self, programs: Path) -> None:
        self._programs = programs
        self.home = Path(tempfile.mkdtemp(prefix="hekla-podman-"))
        self.socket = str(self.home / "podman.sock")
        self.engine = Engine(self.socket)
        self.image = IMAGE
        self.registry = f"127.0.0.1:{_free_port()}"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id of the server. Without root, it can be the child of the process that was started."""
        assert self._process is not None
        started = self._process.pid
        if os.geteuid() == 0:
            return started
        children = "".join(path.read_text() for path in Path(f"/proc/{started}/task").glob("*/children")).split()
        return int(children[0]) if children else started

    def prepare(self) -> None:
        """Write its settings."""
        (self.home / _FOLDER).mkdir(parents=True)
        for name, text in _SETTINGS.items():
            (self.home / _FOLDER / name).write_text(text.format(home=self.home))

    def start(self) -> None:
        """Start it, and wait until it answers."""
        env = {"HOME": str(self.home), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
        if is_root := os.geteuid() == 0:
            env |= {name: str(self.home / _FOLDER / file) for name, file in _VARIABLES.items()}
        else:
            env["XDG_RUNTIME_DIR"] = str(self.home)
        script = _MOUNT + _START if is_root else _START
        command = [*(_AS_ROOT if is_root else ("sh", "-c")), script.format(programs=self._programs, home=self.home)]
        with (self.home / "log").open("ab") as log:
            self._process = spawn(command, output=log.fileno(), env=env, folder=self.home)
        limit = time.monotonic() + READY_WITHIN_SECONDS
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > limit:
                raise RuntimeError(f"Podman does not start: {(self.home / 'log').read_text()}")
            time.sleep(0.02)

    def kill(self) -> None:
        """End the server alone. Its containers go on."""
        assert self._process is not None
        os.kill(self.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        """End its containers and itself, and delete its files."""
        for name in self.containers():
            self.engine.request("DELETE", f"/containers/{name}?force=true")
        self.kill()
        shutil.rmtree(self.home, ignore_errors=True)

    def build(self) -> None:
        """Build the image of the tests: busybox, whose user is 1000 unless the container has another."""
        busybox = self._programs / "bin" / "busybox"
        names = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split()
        files = {"bin/busybox": busybox.read_bytes(), "etc/nsswitch.conf": b"hosts: files\n", "etc/passwd": _USERS}
        root = _archive(files, links={f"bin/{name}": "busybox" for name in names})
        context = _archive({"Dockerfile": _DOCKERFILE, "root.tar": root})
        lines = list(self.engine.lines(f"/build?t={IMAGE}", {"Content-Type": "application/x-tar"}, context))
        if any("error" in line for line in lines):
            raise RuntimeError(f"Podman does not build the image: {lines}")

    def containers(self) -> list[str]:
        """The names of its containers, also of ended ones."""
        found = self.engine.request("GET", "/containers/json?all=true")
        return [one["Names"][0].removeprefix("/") for one in found]

    def _is_ready(self) -> bool:
        try:
            return bool(self.engine.request("GET", "/version"))
        except (OSError, EngineError):
            return False


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _archive(files: Mapping[str, bytes], links: Mapping[str, str] = MappingProxyType({})) -> bytes:
    """A tar archive of executable files and links."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o755 if name.startswith("bin/") else 0o644
            archive.addfile(member, io.BytesIO(content))
        for name, target in links.items():
            if name not in files:
                member = tarfile.TarInfo(name)
                member.type, member.linkname = tarfile.SYMTYPE, target
                archive.addfile(member)
    return buffer.getvalue()
