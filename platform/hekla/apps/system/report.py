"""The whole report on the state of the console, for the page, REST and the command line. Nothing is written."""

import platform
from dataclasses import dataclass
from datetime import datetime

import django

from hekla import __version__
from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.clusters import leases
from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Cluster, Lease
from hekla.apps.event_log import selectors as event_log
from hekla.apps.job_metrics import selectors as job_metrics
from hekla.apps.measures import job_counting
from hekla.apps.measures import selectors as measures
from hekla.apps.notifications import selectors as notifications
from hekla.apps.system.database import DatabaseState, database_state
from hekla.apps.system.deliveries import OutboxState, outboxes
from hekla.apps.system.messages import BrokerState, broker_state


@dataclass(frozen=True, slots=True)
class LogReader:
    """A reader of the event log. `number`: its last event, None before its first; `behind`: how many events are newer;
    `behind_seconds`: the age of the first of these.
    """

    name: str
    number: int | None
    behind: int = 0
    behind_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ControllerState:
    """The controller of a cluster. `holder`: the process with the lease, empty if none has it; `silent_seconds`: since
    it last renewed the lease; `fault`: its last unexpected error. `version`: of the cluster, as its health check says.
    """

    cluster: str
    kind: str
    is_paused: bool
    holder: str
    epoch: int
    silent_seconds: float
    fault: str
    version: str
    problem: str

    @property
    def is_silent(self) -> bool:
        """Whether it hangs or is gone."""
        return not self.is_paused and self.silent_seconds > leases.SILENT_AFTER.total_seconds()


@dataclass(frozen=True, slots=True)
class SystemReport:
    """The state of the console at an instant. `last_event`: the newest number of the event log."""

    at: datetime
    hekla: str
    python: str
    django: str
    broker: BrokerState
    database: DatabaseState
    controllers: tuple[ControllerState, ...]
    readers: tuple[LogReader, ...]
    last_event: int
    oldest_event_at: datetime | None
    outboxes: tuple[OutboxState, ...]


def system_report(user: User, *, now: datetime) -> SystemReport:
    """The state of the console. Raises Forbidden."""
    accounts.require(user, Permission.MANAGE_CLUSTERS)
    last = event_log.last_number()
    return SystemReport(
        at=now,
        hekla=__version__,
        python=platform.python_version(),
        django=django.get_version(),
        broker=broker_state(),
        database=database_state(),
        controllers=tuple(_controller(cluster, lease, now) for cluster, lease in clusters.with_leases()),
        readers=tuple(_reader(name, number, last, now) for name, number in _positions().items()),
        last_event=last,
        oldest_event_at=event_log.oldest(),
        outboxes=outboxes(now),
    )


def _positions() -> dict[str, int | None]:
    """The readers that keep their position in a row. Pages and controllers keep theirs in memory."""
    return {
        "notifications": notifications.reader_position(),
        "job_metrics": job_metrics.reader_position(),
        "measures": measures.reader_position(),
        "job_measures": job_counting.reader_position(),
    }


def _reader(name: str, number: int | None, last: int, now: datetime) -> LogReader:
    if number is None or number >= last:
        return LogReader(name, number)
    first = event_log.first_after(number)
    return LogReader(name, number, last - number, max(0.0, (now - first).total_seconds()) if first else 0.0)


def _controller(cluster: Cluster, lease: Lease | None, now: datetime) -> ControllerState:
    health = getattr(cluster, "health", None)
    return ControllerState(
        cluster=cluster.name,
        kind=cluster.kind,
        is_paused=cluster.is_paused,
        holder=lease.holder if lease and leases.is_held(lease, now=now) else "",
        epoch=lease.epoch if lease else 0,
        silent_seconds=max(0.0, leases.unrenewed_for(cluster, lease, now=now).total_seconds()),
        fault=lease.fault if lease else "",
        version=health.version if health else "",
        problem=health.problem if health else "",
    )
