"""Questions about idleness: the rule of a tenant, the record of a session, and what the rule says about it."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet

from hekla.apps.idleness.models import IdlePolicy, SessionIdleness, SessionMinute
from hekla.apps.tenancy.models import Tenant
from hekla.apps.workbench.models import ToolSession
from hekla.domain.idleness import ActiveMinute, IdleRule, IdleVerdict, Signal, is_in_use, judge, narrowed, strictest
from hekla.domain.phases import PodPhase
from hekla.domain.tools import Tool

USUAL_WINDOW = timedelta(hours=3)
"""How much of the record is shown without a rule."""
MARGIN, RECENT = timedelta(minutes=10), timedelta(minutes=4)
"""RECENT is less than the shortest idle time."""
ALWAYS_COUNTS = Q(requests__gt=0) | Q(input__gt=0) | Q(terminal__gt=0) | Q(ssh__gt=0) | Q(kernel__gt=0)
"""Minutes in which a person or a kernel used a session."""


@dataclass(frozen=True, slots=True)
class SessionActivity:
    """A session against the rule of its tenant. `rule`: None if idle sessions go on; then there is no verdict."""

    session: ToolSession
    rule: IdleRule | None
    verdict: IdleVerdict | None
    minutes: Sequence[ActiveMinute]
    state: SessionIdleness | None

    @property
    def keep_until(self) -> datetime | None:
        """Until when a person keeps it; None if nobody has."""
        return self.state.keep_until if self.state else None


def policy_of(tenant: Tenant | None) -> IdlePolicy:
    """The stored policy of a tenant, or that for all; one with the default values if there is none."""
    return IdlePolicy.objects.filter(tenant=tenant).first() or IdlePolicy(tenant=tenant)


def rules_of(tenants: Collection[int]) -> dict[int, IdleRule | None]:
    """The rule for the sessions of each of these tenants (primary keys): its own and that for all, both kept."""
    found: dict[int | None, list[IdleRule]] = defaultdict(list)
    for policy in IdlePolicy.objects.filter(Q(tenant__in=tenants) | Q(tenant=None), ends_sessions=True):
        found[policy.tenant_id].append(_rule(policy))
    return {tenant: strictest([*found[None], *found[tenant]]) for tenant in tenants}


def _rule(policy: IdlePolicy) -> IdleRule:
    limits = {Signal.CPU: policy.cpu_percent, Signal.GPU: policy.gpu_percent, Signal.NETWORK: policy.network_kib}
    return IdleRule(
        idle=timedelta(minutes=policy.idle_minutes),
        grace=timedelta(minutes=policy.grace_minutes),
        limits={signal: float(limit) for signal, limit in limits.items() if limit is not None},
    )


def _rules(sessions: Collection[ToolSession]) -> dict[int, IdleRule | None]:
    """The rule for each of these sessions (primary keys): that of its tenant, and what the job of its pod chose."""
    of_tenants, usual = rules_of({session.pod.job.tenant_id for session in sessions}), _rule(IdlePolicy())
    jobs = {session.pk: session.pod.job for session in sessions}
    return {pk: narrowed(of_tenants[job.tenant_id], job.spec, usual) for pk, job in jobs.items()}


def activity_of(session: ToolSession, *, now: datetime) -> SessionActivity:
    """One session against its rule. The caller has checked that the person may see it."""
    return activities([session], now=now)[0]


def activities(sessions: Iterable[ToolSession], *, now: datetime) -> list[SessionActivity]:
    """These sessions against their rules, with as many queries as for one."""
    sessions = list(sessions)
    rules = _rules(sessions)
    since = {session.pk: now - window(rules[session.pk]) for session in sessions}
    minutes = _minutes(since)
    states = {state.session_id: state for state in SessionIdleness.objects.filter(session__in=sessions)}
    return [
        _activity(session, rules[session.pk], minutes[session.pk], states.get(session.pk), since, now)
        for session in sessions
    ]


def quiet(sessions: Sequence[ToolSession], *, now: datetime) -> list[ToolSession]:
    """Those of these sessions that a rule applies to, and that nothing has used in the last minutes.

    Only they need the whole record: a session in use is kept, whatever was before. So is one that a person or a kernel
    used within the idle time.
    """
    rules = _rules(sessions)
    minutes = _minutes({session.pk: now - RECENT for session in sessions if rules[session.pk]})
    found: list[ToolSession] = []
    since: dict[int, datetime] = {}
    for session in sessions:
        rule = rules[session.pk]
        recent = [ActiveMinute(row.at, _amounts(row, session)) for row in minutes.get(session.pk, ())]
        if rule is not None and not is_in_use(rule, recent):
            found.append(session)
            since[session.pk] = now - rule.idle
    used = set(_rows(since).filter(ALWAYS_COUNTS).values_list("session", flat=True))
    return [session for session in found if session.pk not in used]


def window(rule: IdleRule | None) -> timedelta:
    """How much of the record decides: until the end of the grace time, the idle time before the warning is in it."""
    return rule.idle + rule.grace + MARGIN if rule else USUAL_WINDOW


def warnings(places: Collection[tuple[int, int]], *, after: datetime) -> list[SessionIdleness]:
    """The warnings since then about open sessions of these people in these pods: pairs of primary keys."""
    pods, people = {pod for pod, _person in places}, {person for _pod, person in places}
    found = SessionIdleness.objects.filter(
        warned_at__gt=after, session__ended_at=None, session__pod__in=pods, session__owner__in=people
    )
    return [one for one in found.select_related("session") if (one.session.pod_id, one.session.owner_id) in places]


def open_sessions() -> list[ToolSession]:
    """All sessions that are ready and have not ended."""
    found = ToolSession.objects.filter(ended_at=None, ready_at__isnull=False, pod__phase=PodPhase.RUNNING)
    return list(found.select_related("owner", "pod__job__cluster", "pod__job__tenant").order_by("pk"))


def _activity(
    session: ToolSession,
    rule: IdleRule | None,
    rows: Sequence[SessionMinute],
    state: SessionIdleness | None,
    since: Mapping[int, datetime],
    now: datetime,
) -> SessionActivity:
    minutes = [ActiveMinute(row.at, _amounts(row, session)) for row in rows]
    verdict = None
    if rule is not None and session.ended_at is None and session.ready_at is not None:
        warning = state.warning if state else None
        until = state.keep_until if state else None
        begin = max(session.ready_at, since[session.pk])
        verdict = judge(rule, minutes, begin=begin, keep_until=until, warning=warning, now=now)
    return SessionActivity(session, rule, verdict, minutes, state)


def _minutes(since: Mapping[int, datetime]) -> Mapping[int, list[SessionMinute]]:
    """The record of these sessions (primary keys), each from its time on."""
    found: dict[int, list[SessionMinute]] = defaultdict(list)
    for row in _rows(since).order_by("session_id", "at"):
        found[row.session_id].append(row)
    return found


def _rows(since: Mapping[int, datetime]) -> QuerySet[SessionMinute]:
    """The minutes of these sessions (primary keys), each from its time on. Sessions with one rule have one time."""
    together: dict[datetime, list[int]] = defaultdict(list)
    for session, at in since.items():
        together[at].append(session)
    wanted = Q()
    for at, sessions in together.items():
        wanted |= Q(session__in=sessions, at__gte=at)
    return SessionMinute.objects.filter(wanted) if since else SessionMinute.objects.none()


def _amounts(row: SessionMinute, session: ToolSession) -> dict[Signal, float | None]:
    amounts: dict[Signal, float | None] = {
        Signal.REQUESTS: row.requests,
        Signal.INPUT: row.input,
        Signal.TERMINAL: row.terminal,
        Signal.SSH: row.ssh,
        Signal.CPU: row.cpu,
        Signal.NETWORK: row.network_bytes / 1024,
    }
    if session.tool == Tool.JUPYTERLAB:
        amounts[Signal.KERNEL] = row.kernel
    if session.pod.cards:
        amounts[Signal.GPU] = row.gpu
    return amounts
