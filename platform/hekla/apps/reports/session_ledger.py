"""The open sessions: who has them, since when nobody uses them, and which GPUs their pods hold, used or not."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from django.db.models import Max

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.clusters import selectors as clusters
from hekla.apps.idleness.models import SessionMinute
from hekla.apps.idleness.selectors import ALWAYS_COUNTS
from hekla.apps.jobs import selectors as jobs
from hekla.apps.measures import ledger
from hekla.apps.measures.ledger import PodGpus
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.workbench import selectors as workbench
from hekla.apps.workbench.models import ToolSession
from hekla.domain.tools import Tool

MOST = 5000
"""Sessions that are read; the newest ones."""
IDLE_MINUTES = 30
"""A session that nobody has used for so long is idle."""
_NO_GPUS = PodGpus(0.0, None)


class SessionGroupBy(StrEnum):
    """What the parts of the sessions are."""

    TOOL = "tool"
    TENANT = "tenant"
    PERSON = "person"


@dataclass(frozen=True, slots=True)
class SessionsQuery:
    """Which sessions, by name; empty: all. `by`: the parts."""

    cluster: str = ""
    tenant: str = ""
    person: str = ""
    tool: str = ""
    by: SessionGroupBy = SessionGroupBy.TOOL


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A session. `used_at`: when a person or a kernel used it last, or when it was opened. `gpus`: those of its pod."""

    session: ToolSession
    used_at: datetime
    gpus: PodGpus

    def is_idle(self, now: datetime) -> bool:
        """Whether nobody has used it for a while."""
        return now - self.used_at >= timedelta(minutes=IDLE_MINUTES)


@dataclass(frozen=True, slots=True)
class SessionSums:
    """How many sessions there are, how many of them are idle, and the GPUs of their pods, each pod once."""

    sessions: int
    idle: int
    gpus: float
    unused: float


@dataclass(frozen=True, slots=True)
class SessionPart:
    """The sessions of a tool, tenant or person. `key`: by which they can be filtered."""

    name: str
    key: str
    sums: SessionSums


@dataclass(frozen=True, slots=True)
class SessionsReport:
    """The open sessions now: the longest unused first."""

    query: SessionsQuery
    at: datetime
    is_simulated: bool
    rows: Sequence[OpenSession]
    total: SessionSums
    parts: Sequence[SessionPart]


def sessions(user: User, query: SessionsQuery, *, now: datetime) -> SessionsReport:
    """The open sessions with pods of jobs that the person can see. Raises NotFound for names that they cannot see."""
    chosen = [clusters.get(query.cluster)] if query.cluster else list(clusters.all_clusters())
    is_simulated = bool(query.cluster) and chosen[0].is_simulated
    ids = [one.pk for one in chosen if query.cluster or not one.is_simulated]
    found = workbench.open_sessions().filter(pod__job__cluster__in=ids)
    if not accounts.may(user, Permission.SEE_EVERYTHING):
        found = found.filter(pod__job__in=jobs.known_to(user).order_by().values("pk"))
    if query.tenant:
        found = found.filter(pod__job__tenant=tenancy.get(query.tenant, user))
    if query.person:
        found = found.filter(owner__username=query.person)
    if query.tool:
        found = found.filter(tool=query.tool)
    rows = _rows(list(found[:MOST]), now)
    return SessionsReport(query, now, is_simulated, rows, _sums(rows, now), _parts(rows, query.by, now))


def _rows(found: Sequence[ToolSession], now: datetime) -> list[OpenSession]:
    minutes = SessionMinute.objects.filter(ALWAYS_COUNTS, session__in=found).order_by()
    used = dict(minutes.values_list("session").annotate(last=Max("at")))
    gpus = ledger.gpus_of({one.pod_id for one in found}, now=now)
    rows = [
        OpenSession(one, max(used.get(one.pk, one.created_at), one.created_at), gpus.get(one.pod_id, _NO_GPUS))
        for one in found
    ]
    return sorted(rows, key=lambda row: (row.used_at, row.session.pk))


def _sums(rows: Sequence[OpenSession], now: datetime) -> SessionSums:
    pods = {row.session.pod_id: row.gpus for row in rows}
    unused = sum(one.gpus for one in pods.values() if one.unused_since)
    return SessionSums(len(rows), sum(row.is_idle(now) for row in rows), sum(one.gpus for one in pods.values()), unused)


_KEYS: dict[SessionGroupBy, Callable[[ToolSession], tuple[str, str]]] = {
    SessionGroupBy.TOOL: lambda one: (one.tool, Tool(one.tool).label),
    SessionGroupBy.TENANT: lambda one: (one.pod.job.tenant.slug, one.pod.job.tenant.name),
    SessionGroupBy.PERSON: lambda one: (one.owner.username, one.owner.username),
}


def _parts(rows: Sequence[OpenSession], by: SessionGroupBy, now: datetime) -> list[SessionPart]:
    """The parts, those with most unused GPUs and sessions first."""
    found: dict[tuple[str, str], list[OpenSession]] = {}
    for row in rows:
        found.setdefault(_KEYS[by](row.session), []).append(row)
    parts = [SessionPart(name, key, _sums(some, now)) for (key, name), some in found.items()]
    return sorted(parts, key=lambda part: (-part.sums.unused, -part.sums.sessions, part.key))
