"""The roles of Hekla's processes: their command lines, and the order in which they stop."""

import http.client
import re
import signal
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hekla.launcher.embedded import Postgres, Valkey
from hekla.launcher.up.child import Role
from hekla.launcher.up.prefork import Launcher

_GRAVE = re.compile(r"FATAL|PANIC|No space left|Out of memory|MISCONF", re.IGNORECASE)
_CELERY = ("celery", "--quiet", "-A", "hekla.project.celery")
_WEB, _WORKERS, _VALKEY, _POSTGRES = range(4)


@dataclass(frozen=True)
class Address:
    """The address on which the web server listens."""

    host: str
    port: int

    @property
    def local(self) -> str:
        """The host for connections from this machine."""
        return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104  (compared, not bound)

    def answers(self) -> bool:
        """Whether the console answers `/healthz` with 200."""
        line = http.client.HTTPConnection(self.local, self.port, timeout=2)
        try:
            line.request("GET", "/healthz", headers={"Host": "localhost"})
            return line.getresponse().status == http.client.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            line.close()


def postgres(server: Postgres) -> Role:
    """The database server. It stops last, because all others write to it."""
    return Role(
        "postgres",
        server.start,
        stop_stage=_POSTGRES,
        prepare=server.prepare,
        is_ready=server.is_ready,
        shows=_is_grave,
        stop_signal=server.stop_signal,
        last_signal=signal.SIGQUIT,
    )


def valkey(server: Valkey) -> Role:
    """The broker of messages between the processes."""
    return Role(
        "valkey",
        server.start,
        stop_stage=_VALKEY,
        prepare=server.prepare,
        is_ready=server.is_ready,
        shows=_is_grave,
        stop_signal=server.stop_signal,
    )


def web(address: Address, env: Mapping[str, str], launcher: Launcher | None = None) -> Role:
    """The console: pages, REST, websockets."""
    argv = ["hekla.launcher.web_server", "--host", address.host, "--port", str(address.port)]
    return _python("web", argv, env, launcher, stop_stage=_WEB, is_ready=lambda _pid: address.answers())


def first_web(address: Address, env: Mapping[str, str], launcher: Launcher, listener: int) -> Role:
    """A console that answers before the code of all pages is loaded: it loads a page when that is first opened.

    `listener`: the descriptor of a listening socket.
    """
    argv = ["hekla.launcher.web_server", "--listener", str(listener), "--lazy"]
    ready = lambda _pid: address.answers()  # noqa: E731
    return _python("first-web", argv, env, launcher, stop_stage=_WEB, is_ready=ready, inherited=[listener])


def next_web(run: Path, env: Mapping[str, str], launcher: Launcher, listener: int) -> Role:
    """The console with all pages. It listens at the same socket as the one before, which can then end."""
    file = run / "web.ready"
    argv = ["hekla.launcher.web_server", "--listener", str(listener), "--ready-file", str(file)]

    def is_ready(pid: int) -> bool:
        with suppress(OSError):
            return file.read_text(encoding="ascii") == str(pid)
        return False

    return _python("web", argv, env, launcher, stop_stage=_WEB, is_ready=is_ready, inherited=[listener])


def workers(env: Mapping[str, str], launcher: Launcher | None = None, *, schedule: Path | None = None) -> list[Role]:
    """A worker for the controllers and one for all other tasks, so that neither delays the other.

    The latter also sends the periodic tasks, if there is a file for their `schedule`.
    By the file `HEKLA_HEARTBEAT`, which only the controllers touch, the supervisor notices that they hang.
    """
    heartbeat = env.get("HEKLA_HEARTBEAT")
    return [
        _worker("control", 4, env, launcher, heartbeat=Path(heartbeat) if heartbeat else None),
        _worker("default", 4, _next_door(env), launcher, schedule=schedule),
    ]


def _next_door(env: Mapping[str, str]) -> Mapping[str, str]:
    """The environment with the next metrics port, as two workers on a machine cannot share one."""
    port = int(env.get("HEKLA_METRICS_PORT") or 0)
    return {**env, "HEKLA_METRICS_PORT": str(port + 1)} if port else env


def beat(schedule: Path, env: Mapping[str, str], launcher: Launcher | None = None) -> Role:
    """Celery beat as a process, for places with several workers: only one may send the periodic tasks."""
    argv = [*_CELERY, "beat", "--schedule", str(schedule), "--pidfile=", "--loglevel", "warning"]
    return _python("beat", argv, env, launcher, stop_stage=_WORKERS)


def _worker(
    queue: str,
    threads: int,
    env: Mapping[str, str],
    launcher: Launcher | None,
    *,
    heartbeat: Path | None = None,
    schedule: Path | None = None,
) -> Role:
    shape = ["--queues", queue, "--pool", "threads", "--concurrency", str(threads), "--hostname", f"{queue}@%h"]
    quiet = ["--loglevel", "warning", "--without-gossip", "--without-mingle", "--without-heartbeat"]
    periodic = ["--periodic-tasks", str(schedule)] if schedule else []
    argv = [*_CELERY, "worker", *shape, *quiet, *periodic]
    return _python(queue, argv, env, launcher, stop_stage=_WORKERS, shows=_is_news, heartbeat=heartbeat)


def _python(
    name: str,
    argv: list[str],
    env: Mapping[str, str],
    launcher: Launcher | None = None,
    inherited: Collection[int] = (),
    **extra: object,
) -> Role:
    launch = (launcher or Launcher()).start
    return Role(name, lambda output: launch(name, argv, env, output, inherited), **extra)  # type: ignore[arg-type]


def _is_grave(line: str) -> bool:
    """Whether a line of a server is for the terminal. The others are only for the log files."""
    return _GRAVE.search(line) is not None


def _is_news(line: str) -> bool:
    """Whether a line of a worker is for the terminal: not empty, and not the message about its shutdown."""
    return bool(line.strip()) and "Warm shutdown" not in line
