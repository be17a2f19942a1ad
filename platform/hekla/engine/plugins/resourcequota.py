"""Quotas of namespaces: a job is let in when its least resources still fit in each of them (`volcano-spec` §5.4).

Volcano knows what pods use and what it has let in during this session; what it let in earlier and what has no pods yet
escapes it. Here such jobs count as well when a quota comes without its use, `requests.cpu` means `cpu`, and a job
counts for as many `pods` as it needs to start.
"""

from collections import defaultdict
from collections.abc import Mapping

from hekla.domain.phases import GangPhase
from hekla.domain.resources import Resources
from hekla.engine.columns import EPSILON
from hekla.engine.decisions import Cause, Reason
from hekla.engine.gangs import ALLOCATED, Gang
from hekla.engine.points import Point, Vote
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session

_PREFIX = "requests."
Amounts = Mapping[str, float]


def open_session(session: Session, option: PluginOption) -> None:
    """Reject what goes over a quota; otherwise permit."""
    follows = session.policy.follows_volcano
    quotas: dict[str, list[tuple[Amounts, Resources]]] = defaultdict(list)
    for quota in session.state.quotas:
        used = _held(session, quota.namespace) if quota.used is None else quota.used
        pair = (quota.hard, used) if follows else (_plain(quota.hard), Resources(_plain(used)))
        quotas[quota.namespace].append(pair)
    let_in: dict[str, Resources] = defaultdict(Resources)

    def enqueueable(gang: Gang) -> Vote:
        namespace = gang.job.namespace
        least = _least(gang, follows=follows)
        for hard, used in quotas.get(namespace, ()):
            if _short(hard, used + let_in[namespace] + least):
                session.reasons[gang.job.uid] += (_refusal(hard, used + let_in[namespace], least),)
                return Vote.REJECT
        return Vote.PERMIT

    def enqueued(gang: Gang) -> None:
        let_in[gang.job.namespace] += _least(gang, follows=follows)

    session.register(Point.JOB_ENQUEUEABLE, option, enqueueable, is_lasting=True)
    session.register(Point.JOB_ENQUEUED, option, enqueued)


def _plain(amounts: Amounts) -> dict[str, float]:
    return {name.removeprefix(_PREFIX): amount for name, amount in amounts.items()}


def _least(gang: Gang, *, follows: bool) -> Resources:
    least = gang.job.min_resources or Resources()
    return least if follows else Resources({"pods": gang.job.min_available} | dict(least))


def _held(session: Session, namespace: str) -> Resources:
    """What the namespace's tasks hold, and what those of its jobs that were let in still need for their minimum."""
    return sum((_claim(gang) for gang in session.gangs.values() if gang.job.namespace == namespace), Resources())


def _claim(gang: Gang) -> Resources:
    held = sum((m.task.request + {"pods": 1.0} for m in gang.members if m.status in ALLOCATED), Resources())
    if gang.phase not in (GangPhase.INQUEUE, GangPhase.RUNNING):
        return held
    least = _least(gang, follows=False)
    return Resources({name: max(held.amount(name), least.amount(name)) for name in {*held, *least}})


def _short(hard: Amounts, wanted: Resources) -> list[str]:
    return [name for name, bound in hard.items() if wanted.amount(name) > bound + EPSILON]


def _refusal(hard: Amounts, used: Resources, least: Resources) -> Reason:
    named = Resources({name: least.amount(name) for name in hard})
    left = Resources({name: max(0.0, bound - used.amount(name)) for name, bound in hard.items()})
    return Reason(
        cause=Cause.QUOTA,
        action="enqueue",
        plugin="resourcequota",
        code="namespace_quota",
        need=named,
        have=left,
        ever=not _short(hard, least),
    )
