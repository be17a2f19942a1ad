"""A real registry of images with a password, for tests."""

import base64
import json
import socket
import subprocess
import time
from pathlib import Path

from tests.podman.server import IMAGE, Podman

from hekla.launcher.embedded.child import spawn

READY_WITHIN_SECONDS = 30.0
USER, PASSWORD = "tester", "secret"
_HASH = "$2b$04$yNF1hHsb08mjAW19y48C5eLt.Um/dkilurZJ3n8dATA6g35YnvAea"
_SETTINGS = """
version: 0.1
log: {{level: error}}
storage: {{filesystem: {{rootdirectory: {home}/registry}}}}
http: {{addr: "{host}"}}
auth: {{htpasswd: {{realm: tests, path: {home}/htpasswd}}}}
"""


class Registry:
    """One registry, which lets the user `USER` in. It uses the files and the programs of this Podman."""

    password = PASSWORD

    def __init__(self, podman: Podman, programs: Path) -> None:
        self._podman, self._programs = podman, programs
        self.host = podman.registry
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        home = self._podman.home
        (home / "htpasswd").write_text(f"{USER}:{_HASH}\n")
        settings = home / "registry.yaml"
        settings.write_text(_SETTINGS.format(home=home, host=self.host))
        with (home / "registry.log").open("ab") as log:
            command: list[str | Path] = [self._programs / "usr" / "bin" / "docker-registry", "serve", settings]
            self._process = spawn(command, output=log.fileno())
        limit = time.monotonic() + READY_WITHIN_SECONDS
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > limit:
                raise RuntimeError(f"The registry does not start: {(home / 'registry.log').read_text()}")
            time.sleep(0.02)

    def stop(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def auth(self, password: str) -> str:
        """The credentials as Docker's `config.json` has them."""
        return base64.b64encode(f"{USER}:{password}".encode()).decode()

    def push(self, name: str, tag: str) -> str:
        """Push the image of the tests by this name. Afterwards Podman has it by its first name only."""
        image = f"{self.host}/{name}:{tag}"
        document = {"username": USER, "password": PASSWORD}
        header = {"X-Registry-Auth": base64.urlsafe_b64encode(json.dumps(document).encode()).decode()}
        engine = self._podman.engine
        engine.request("POST", f"/images/{IMAGE}/tag?repo={self.host}/{name}&tag={tag}")
        lines = list(engine.lines(f"/images/{image}/push", header))
        if any("error" in line for line in lines):
            raise RuntimeError(f"Podman does not push the image: {lines}")
        engine.request("DELETE", f"/images/{image}?noprune=true")
        return image

    def _is_ready(self) -> bool:
        host, _, port = self.host.partition(":")
        try:
            with socket.create_connection((host, int(port)), timeout=1):
                return True
        except OSError:
            return False
