"""A complete Hekla, started with `manage.py up` as a new user does, and a real browser."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import Browser, Error, Page
from tests.e2e.operator_client import Operator
from tests.support.browser import SIZE, clear

CHECKOUT = Path(__file__).resolve().parents[2]
READY_SECONDS = 180
RECENT_SECONDS = 240.0
"""Hekla takes a sign-in for recent for ten minutes, and the tests of a run take longer."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def environment() -> dict[str, str]:
    """The environment of a new user, with the packages of this test run."""
    own = ("HEKLA_", "DATABASE_", "VALKEY_", "DJANGO_")
    return {k: v for k, v in os.environ.items() if not k.startswith(own)} | {"HEKLA_VENV": sys.prefix}


class HeklaServer:
    """A process of `manage.py up` with its own data folder, and with more in its environment."""

    def __init__(self, home: Path, *options: str, **more: str) -> None:
        self.home, self.port, self._more = home, free_port(), more
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = home.parent / f"{home.name}.log"
        self._options = options
        self.signed_in_at = 0.0
        self.start()

    def start(self) -> None:
        command = [
            sys.executable,
            "manage.py",
            "up",
            "--port",
            str(self.port),
            "--data",
            str(self.home),
            *self._options,
        ]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command,
                cwd=CHECKOUT,
                env=environment() | self._more,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            self.wait_until_ready()
        except BaseException:
            self.stop()
            raise

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while not (self.is_healthy() and "/accounts/link/" in self.read_log()):
            assert self.process.poll() is None, self.read_log()
            assert time.monotonic() < deadline, self.read_log()
            time.sleep(0.1)
        while not self.is_complete():
            assert self.is_healthy(), "a request failed while the web process with all pages took over"
            assert time.monotonic() < deadline, self.read_log()
            time.sleep(0.05)

    def is_complete(self) -> bool:
        """Whether the web process with all pages has taken over."""
        running = json.loads((self.home / "processes.json").read_text())
        return "web" in running and "first-web" not in running

    def read_log(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def is_healthy(self) -> bool:
        """Asked ten times a second, so without a client of httpx2: each new one reads all certificates."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=2)
        try:
            connection.request("GET", "/healthz")
            return connection.getresponse().status == 200
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()

    @cached_property
    def operator(self) -> Operator:
        """Started once: to load Hekla takes five CPU seconds."""
        return Operator(self.home)

    @property
    def sign_in_link(self) -> str:
        return re.findall(r"http://\S+/accounts/link/\S+/", self.read_log())[-1]

    def children(self) -> dict[str, int]:
        """The process ID of each role that runs."""
        listed = json.loads((self.home / "processes.json").read_text())
        alive = {child.pid for child in psutil.Process(self.process.pid).children(recursive=True)}
        return {role: found[0] for role, found in listed.items() if found and found[0] in alive}

    def stop(self) -> None:
        if operator := self.__dict__.pop("operator", None):
            operator.close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(10)

    def end_pods(self) -> None:
        """Kill every pod that this server left."""
        for process in psutil.process_iter(["cmdline", "environ"]):
            command = " ".join(process.info["cmdline"] or ())
            if str(self.home) in command and "launch.py" in command:  # a shim, or the first process of its pod
                with suppress(psutil.NoSuchProcess):
                    process.kill()  # the kernel ends a pod with its shim


@pytest.fixture(scope="session")
def hekla(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[HeklaServer]:
    """One server for all browser tests of a run, without the clusters of `--demo`, which take CPU also when idle.

    It ends with the browser.
    """
    home = tmp_path_factory.mktemp("e2e") / "home"
    server = HeklaServer(home)
    yield server
    server.stop()
    server.end_pods()


@pytest.fixture(scope="session")
def admin_page(hekla: HeklaServer, browser: Browser) -> Iterator[Page]:
    """The page of the first admin for all tests, who signs in with the one-time link. See `page`."""
    context = browser.new_context(base_url=hekla.url, viewport=SIZE)
    page = context.new_page()
    sign_in(hekla, page, hekla.sign_in_link)
    yield page
    context.close()


def sign_in(hekla: HeklaServer, page: Page, link: str) -> None:
    page.goto(link)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{hekla.url}/")
    hekla.signed_in_at = time.monotonic()


def _sign_in_again(hekla: HeklaServer, page: Page) -> None:
    link = f"{hekla.url}/accounts/link/{hekla.operator(do='link')}/"
    page.context.clear_cookies()
    sign_in(hekla, page, link)


def clean(hekla: HeklaServer, page: Page) -> None:
    """Make the page as good as new, but still signed in."""
    clear(page, f"{hekla.url}/healthz")
    page.context.clear_cookies(name="django_language")


@pytest.fixture
def page(hekla: HeklaServer, admin_page: Page) -> Iterator[Page]:
    """The page of the first admin, whose sign-in is recent. An error in its scripts fails the test."""
    if time.monotonic() - hekla.signed_in_at > RECENT_SECONDS:
        _sign_in_again(hekla, admin_page)
    clean(hekla, admin_page)
    errors: list[str] = []

    def note(error: Error) -> None:
        errors.append(str(error))

    admin_page.on("pageerror", note)
    yield admin_page
    admin_page.remove_listener("pageerror", note)
    assert errors == []
