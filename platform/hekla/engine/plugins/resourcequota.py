"""Namespace quotas: a job is admitted if its minimum resources fit in each of them (`volcano-spec` §5.4).

Volcano counts the usage of pods, and jobs that it admitted in this session; it misses jobs that were admitted earlier
and have no pods yet. Here such jobs count too if a quota comes without its usage, `requests.cpu` means `cpu`, and a job
counts for as many `pods` as it needs to start.
"""

from collections import defaultdict
from collections.abc import Mapping

from hekla.domain.phases import GangPhase
from hekla.domain.resources import Resources
from hekla.domain.scheduling_inputs import Input
from hekla.domain.translation import gettext_noop
from hekla.engine.columns import EPSILON
from hekla.engine.decisions import Cause, PendingReason
from hekla.engine.extension_points import ExtensionPoint, Vote
from hekla.engine.inputs import Lack, Need
from hekla.engine.job_info import ALLOCATED, JobInfo
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session

_PREFIX = "requests."
Amounts = Mapping[str, float]

NEEDS = (Need(Input.RESOURCE_QUOTAS, Lack.NOTHING, gettext_noop("It has no effect: it rejects no job.")),)


def open_session(session: Session, option: PluginOption) -> None:
    """Reject jobs that exceed a quota; permit the others."""
    follows = session.policy.follows_volcano
    quotas: dict[str, list[tuple[Amounts, Resources]]] = defaultdict(list)
    for quota in session.state.quotas:
        used = _held(session, quota.namespace) if quota.used is None else quota.used
        pair = (quota.hard, used) if follows else (_plain(quota.hard), Resources(_plain(used)))
        quotas[quota.namespace].append(pair)
    let_in: dict[str, Resources] = defaultdict(Resources)

    def enqueueable(job: JobInfo) -> Vote:
        namespace = job.group.namespace
        least = _least(job, follows=follows)
        for hard, used in quotas.get(namespace, ()):
            if _short(hard, used + let_in[namespace] + least):
                session.reasons[job.group.uid] += (_refusal(hard, used + let_in[namespace], least),)
                return Vote.REJECT
        return Vote.PERMIT

    def enqueued(job: JobInfo) -> None:
        let_in[job.group.namespace] += _least(job, follows=follows)

    session.register(ExtensionPoint.JOB_ENQUEUEABLE, option, enqueueable, is_cacheable=True)
    session.register(ExtensionPoint.JOB_ENQUEUED, option, enqueued)


def _plain(amounts: Amounts) -> dict[str, float]:
    return {name.removeprefix(_PREFIX): amount for name, amount in amounts.items()}


def _least(job: JobInfo, *, follows: bool) -> Resources:
    least = job.group.min_resources or Resources()
    return least if follows else Resources({"pods": job.group.min_available} | dict(least))


def _held(session: Session, namespace: str) -> Resources:
    """What pods of the namespace hold, and what its admitted jobs still need for their minimum."""
    return sum((_claim(job) for job in session.jobs.values() if job.group.namespace == namespace), Resources())


def _claim(job: JobInfo) -> Resources:
    held = sum((m.spec.request + {"pods": 1.0} for m in job.pods if m.status in ALLOCATED), Resources())
    if job.phase not in (GangPhase.INQUEUE, GangPhase.RUNNING):
        return held
    least = _least(job, follows=False)
    return Resources({name: max(held.amount(name), least.amount(name)) for name in {*held, *least}})


def _short(hard: Amounts, wanted: Resources) -> list[str]:
    return [name for name, bound in hard.items() if wanted.amount(name) > bound + EPSILON]


def _refusal(hard: Amounts, used: Resources, least: Resources) -> PendingReason:
    named = Resources({name: least.amount(name) for name in hard})
    left = Resources({name: max(0.0, bound - used.amount(name)) for name, bound in hard.items()})
    return PendingReason(
        cause=Cause.QUOTA,
        action="enqueue",
        plugin="resourcequota",
        code="namespace_quota",
        need=named,
        have=left,
        free=left,
        limit=Resources(hard),
        ever=not _short(hard, least),
    )
