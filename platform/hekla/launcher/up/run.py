"""The steps of a start, from an empty machine to a console that answers."""

import json
import os
import shutil
import socket
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path

from hekla.launcher.embedded import Postgres, Valkey
from hekla.launcher.embedded.rundir import run_dir
from hekla.launcher.terminal import HISTORY_LINE, LaunchRefused, OtherVersion, say, step
from hekla.launcher.up import network, roles
from hekla.launcher.up.child import Child, Role
from hekla.launcher.up.home import Home
from hekla.launcher.up.prefork import Launcher
from hekla.launcher.up.supervisor import CommandFailed, Supervisor
from hekla.launcher.up.tables import OTHER_VERSION_EXIT_CODE, TablesStamp
from hekla.launcher.up.template import template_folder
from hekla.lib.checkout import CHECKOUT

HOPELESS_DEATHS = 5
READY_WITHIN_SECONDS = 90.0
DISK_LOOK_SECONDS = 30.0
_LITTLE_DISK_BYTES = 200 * 1024**2


class Startup:
    """A start of Hekla: its environment and its steps."""

    def __init__(self, home: Home, address: roles.Address, supervisor: Supervisor) -> None:
        self._home = home
        self._address = address
        self._supervisor = supervisor
        self._looked_at_disk = time.monotonic()
        self._disk_is_low = False
        self._launcher = Launcher()
        self._web: Child | None = None
        self._listener: socket.socket | None = None
        self.env = self._environment()

    @property
    def public_url(self) -> str:
        """The URL for the browser."""
        return self.env["HEKLA_PUBLIC_URL"]

    def bring_up(self, *, demo: bool) -> str:
        """Start up to a console that answers. Returns the path of the sign-in link. Raises LaunchRefused, Stopped."""
        network.check_tool_host(self.env)
        self._supervisor.end_leftovers()
        self._start_servers()
        self._bring_tables_up()
        return self._start_console(demo)

    def complete(self) -> None:
        """Start what people need not wait for: a web process with all pages, and the workers. Raises Stopped.

        Tasks wait in the queue for the workers.
        """
        self._replace_first_web()
        self._launcher.load_workers()
        for role in roles.workers(self.env, self._launcher, schedule=run_dir(self._home.path) / "beat"):
            self._supervisor.add(role)

    def watch_disk(self) -> None:
        """Warn before the disk is full, because PostgreSQL would stop."""
        if time.monotonic() - self._looked_at_disk < DISK_LOOK_SECONDS:
            return
        self._looked_at_disk = time.monotonic()
        free = shutil.disk_usage(self._home.path).free
        was_low, self._disk_is_low = self._disk_is_low, free < _LITTLE_DISK_BYTES
        if self._disk_is_low and not was_low:
            self._supervisor.journal.say(
                f"The disk that holds {self._home.path} has {free // 1024**2} MB left. When it is full, Hekla can "
                "write nothing more: make room."
            )

    def _environment(self) -> dict[str, str]:
        """The environment of the child processes. The caller's variables override defaults, for separate servers."""
        run = run_dir(self._home.path)
        defaults = {
            "DATABASE_URL": Postgres.url_at(run),
            "VALKEY_URL": Valkey.url_at(run),
            "HEKLA_SECRET_KEY": self._home.secret_key(),
            "HEKLA_PUBLIC_URL": network.url(self._address),
            "HEKLA_ALLOWED_HOSTS": network.allowed_hosts(self._address),
        }
        ours = {
            "HEKLA_HOME": str(self._home.path),
            "HEKLA_HEARTBEAT": str(run / "control.heartbeat"),
            "DJANGO_SETTINGS_MODULE": "hekla.project.settings",
            "PYTHONPATH": str(CHECKOUT / "platform"),
            "PYTHONUNBUFFERED": "1",
            "CELERY_SKIP_CHECKS": "1",  # Django's checks of the code: the tests run them
        }
        return {**defaults, **os.environ, **ours}

    def _start_servers(self) -> None:
        """Start the servers. They start in parallel to the loading of code here, because both take long."""
        servers = self._servers()
        with step("starting " + (" and ".join(servers) or "Hekla")):
            if not self._database.exists():
                self._load_while([role.prepare for role in servers.values()])
                if "PostgreSQL" in servers and self._template.is_dir():
                    self._tables_stamp().write()
            started = [self._supervisor.add(role) for role in servers.values()]
            self._launcher.load(self.env)
            self._wait_for(*started)

    def _load_while(self, works: Iterable[Callable[[], None]]) -> None:
        """Load the code while a thread runs `works`, which wait for other processes. It ends before any fork."""
        with ThreadPoolExecutor(1) as beside:
            started = [beside.submit(work) for work in works]
            self._launcher.load(self.env)
            for work in started:
                work.result()

    @property
    def _database(self) -> Path:
        return self._home.path / "postgres"

    @cached_property
    def _template(self) -> Path:
        return template_folder()

    def _tables_stamp(self) -> TablesStamp:
        return TablesStamp(self._home.path / "tables", self.env["DATABASE_URL"])

    def _servers(self) -> dict[str, Role]:
        """The embedded servers by name: those without a URL in the environment."""
        run = run_dir(self._home.path)
        found = {}
        if "VALKEY_URL" not in os.environ:
            found["Valkey"] = roles.valkey(Valkey(run))
        if "DATABASE_URL" not in os.environ:
            found["PostgreSQL"] = roles.postgres(Postgres(self._database, run, template=self._template))
        return found

    def _bring_tables_up(self) -> None:
        stamp = self._tables_stamp()
        if stamp.matches():
            return
        with step("preparing the tables") as running:
            lines = self._migrate()
            running.result = f"{sum('Applying' in line for line in lines)} changes"
        stamp.write()

    def _migrate(self) -> list[str]:
        """Run `migrate` and return its output. Raises OtherVersion, LaunchRefused."""
        try:
            return self._django("migrate", "--noinput", "--skip-checks", "--no-color")
        except CommandFailed as failure:
            if failure.exit_code != OTHER_VERSION_EXIT_CODE:
                raise
            raise OtherVersion(_describe_other_version(self._home.path, failure.lines)) from None

    def _start_console(self, demo: bool) -> str:
        """Start the console and create the first rows. Returns the sign-in link."""
        self._web = self._supervisor.add(self._first_web())
        lines = self._make_demonstration() if demo else []
        with step("starting the console"):
            lines = lines or self._django("setup_first_data", "--skip-checks")
            self._wait_for(self._web)
        return _link_in(lines)

    def _first_web(self) -> Role:
        """The first web process: it answers at once where it shares the code that is loaded so far (see `prefork`)."""
        if not self._launcher.is_loaded:
            return roles.web(self._address, self.env, self._launcher)
        self._listener = network.listen(self._address)
        return roles.first_web(self._address, self.env, self._launcher, self._listener.fileno())

    def _replace_first_web(self) -> None:
        """Load the code of all pages, and start a web process with it. It shares that code with the workers.

        Both processes listen at one socket, so no request is refused.
        """
        if self._web is None or self._listener is None:
            return
        self._supervisor.run_through(self._launcher.load_pages())
        listener = self._listener.fileno()
        web = roles.next_web(run_dir(self._home.path), self.env, self._launcher, listener)
        self._wait_for(self._supervisor.add(web))
        self._supervisor.retire(self._web)

    def _make_demonstration(self) -> list[str]:
        """Create the first rows, and those of the demonstrations with a week of history. Returns the output."""
        with step("simulating a week of work") as running:

            def tell(line: str) -> None:
                if line.startswith(HISTORY_LINE):
                    running.result = line.removeprefix(HISTORY_LINE)
                    running.tick()

            lines = self._django("setup_first_data", "--skip-checks", "--demo", tell=tell)
            running.result = ""
        return lines

    def _wait_for(self, *children: Child) -> None:
        def are_ready() -> bool:
            for child in children:
                if child.deaths >= HOPELESS_DEATHS:
                    raise LaunchRefused(f"{child.role.name} does not start; what it said stands above.")
            return all(child.ready for child in children)

        if not self._supervisor.run_until(are_ready, READY_WITHIN_SECONDS):
            late = " and ".join(child.role.name for child in children if not child.ready)
            raise LaunchRefused(
                f"{late} did not answer within {READY_WITHIN_SECONDS:.0f} s. The logs are in {self._home.logs}."
            )

    def _django(self, *command: str, tell: Callable[[str], None] = lambda _line: None) -> list[str]:
        name, argv = command[0], ["django", *command]
        return self._supervisor.run_once(name, lambda output: self._launcher.start(name, argv, self.env, output), tell)


def _describe_other_version(home: Path, lines: list[str]) -> str:
    """The reason why this version cannot use the data folder, and what to do."""
    reason = lines[-1].removeprefix("CommandError: ") if lines else ""
    return (
        f"The data in {home} cannot be used by this version of Hekla.\n"
        f"{reason}\n\n"
        "  To keep the data: start this folder with the version of Hekla that wrote it last.\n"
        "  To start with new data: choose a new folder, for example\n"
        f"    HEKLA_HOME={home}-new python3 manage.py up\n"
        "  To delete the data: python3 manage.py up --reset"
    )


def _link_in(lines: list[str]) -> str:
    """The path in the JSON line of `setup_first_data`, which can print other lines too."""
    for line in lines:
        if line.startswith("{"):
            return str(json.loads(line).get("sign_in", ""))
    say("The sign-in link could not be made.")
    return ""
