"""Questions about jobs that hold GPUs they do not use."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Exists, Max, Q, QuerySet, Sum
from django.db.models.fields.json import KT

from hekla.apps.idleness.models import IdlePolicy, JobIdleness, SessionMinute
from hekla.apps.idleness.recording import minute_of
from hekla.apps.idleness.selectors import MARGIN, RECENT
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.usage import selectors as usage
from hekla.domain.idleness import CHOICES, ActiveMinute, IdleRule, IdleVerdict, Signal, judge, narrowed, strictest
from hekla.domain.job_kinds import EXTERNAL
from hekla.domain.phases import JobPhase, PodPhase
from hekla.domain.tools import Tool

_LONGEST_GRACE = timedelta(hours=10)
_OF_PEOPLE = {
    Signal.REQUESTS: Sum("requests"),
    Signal.INPUT: Sum("input"),
    Signal.KERNEL: Max("kernel"),
    Signal.TERMINAL: Sum("terminal"),
    Signal.SSH: Sum("ssh"),
}


@dataclass(frozen=True, slots=True)
class JobActivity:
    """A job that holds GPUs against the rule of its tenant; `rule`: None if such jobs go on.

    `verdict`: None without a rule, or without running pods with GPUs. `begin`: from when on it is judged.
    """

    job: Job
    rule: IdleRule | None
    verdict: IdleVerdict | None
    minutes: Sequence[ActiveMinute]
    begin: datetime
    state: JobIdleness | None

    @property
    def keep_until(self) -> datetime | None:
        """Until when a person keeps it; None if nobody has."""
        return self.state.keep_until if self.state else None


def rules_of(tenants: Collection[int]) -> dict[int, IdleRule | None]:
    """The rule for the jobs of each of these tenants (primary keys): its own and that for all, both kept."""
    found: dict[int | None, list[IdleRule]] = defaultdict(list)
    for policy in _policies().filter(Q(tenant__in=tenants) | Q(tenant=None)):
        found[policy.tenant_id].append(_rule(policy))
    return {tenant: strictest([*found[None], *found[tenant]]) for tenant in tenants}


def _rule(policy: IdlePolicy) -> IdleRule:
    idle, grace = timedelta(minutes=policy.gpu_job_minutes or 0), timedelta(minutes=policy.grace_minutes)
    return IdleRule(idle, min(grace, _LONGEST_GRACE), {Signal.GPU: float(policy.gpu_percent or 0)})


def _rules(tenants: Mapping[int, int], specs: Mapping[int, Mapping[str, Any]]) -> dict[int, IdleRule | None]:
    """The rule for each of these jobs (primary keys): that of its tenant, and what the job chose."""
    of_tenants, usual = rules_of(set(tenants.values())), _rule(IdlePolicy())
    return {job: narrowed(of_tenants[tenant], specs[job], usual) for job, tenant in tenants.items()}


def _facts(jobs: Collection[int]) -> tuple[dict[int, int], dict[int, Mapping[str, Any]]]:
    """The tenants of these jobs, and what they chose; not their whole documents, which can be large."""
    found = Job.objects.filter(pk__in=jobs).values_list("pk", "tenant", *(KT(f"spec__{name}") for name in CHOICES))
    tenants: dict[int, int] = {}
    chosen: dict[int, Mapping[str, Any]] = {}
    for job, tenant, *values in found:
        tenants[job] = tenant
        chosen[job] = {name: int(value) for name, value in zip(CHOICES, values, strict=True) if value is not None}
    return tenants, chosen


def quiet(*, now: datetime) -> list[Job]:
    """The running jobs with GPUs that a rule applies to, and that are known to have used none in the last minutes.

    Only they need the whole record: a job that uses its GPUs is kept, whatever was before.
    """
    pods: dict[int, list[int]] = defaultdict(list)
    held = _judged().filter(job__phase=JobPhase.RUNNING, job__deleted_at=None)
    for pod, job in held.values_list("pk", "job"):
        pods[job].append(pod)
    if not pods:
        return []
    rules = _rules(*_facts(pods))
    judged = {pod: rule for job, some in pods.items() if (rule := rules[job]) for pod in some}
    recent = usage.recent_gpus(list(judged), since=now - RECENT)
    idle = {pod for pod, percent in recent.items() if percent is not None and percent < judged[pod].limits[Signal.GPU]}
    found = Job.objects.filter(pk__in=[job for job, some in pods.items() if idle.issuperset(some)])
    return list(found.select_related("owner", "cluster", "tenant").order_by("pk"))


def quiet_work() -> list[QuerySet[Any, Any]]:
    """Pods with GPUs, if there is a rule for jobs, or their own one chose one (see `due_work`)."""
    return [_judged()]


def _policies() -> QuerySet[IdlePolicy]:
    """The policies with a rule for jobs."""
    return IdlePolicy.objects.exclude(gpu_job_minutes=None).exclude(gpu_percent=None)


def _judged() -> QuerySet[Pod]:
    """Those of the running pods with GPUs to which a rule may apply."""
    return _holding().filter(Exists(_policies()) | Q(job__spec__has_key="idle_after_seconds"))


def _holding() -> QuerySet[Pod]:
    """The running pods that hold GPUs."""
    found = Pod.objects.filter(phase=PodPhase.RUNNING, stopping=False).exclude(cards=[])
    return found.exclude(job__kind=EXTERNAL)  # their owner ends them


def activity_of(job: Job, *, now: datetime) -> JobActivity:
    """One job against its rule. The caller has checked that the person may see it."""
    return activities([job], now=now)[0]


def activities(jobs: Iterable[Job], *, now: datetime) -> list[JobActivity]:
    """These jobs against their rules, with as many queries as for one."""
    jobs = list(jobs)
    rules = _rules({job.pk: job.tenant_id for job in jobs}, {job.pk: job.spec for job in jobs})
    pods: dict[int, list[Pod]] = defaultdict(list)
    for pod in _holding().filter(job__in=jobs).only("job_id", "started_at", "created_at"):
        pods[pod.job_id].append(pod)
    since = {job.pk: now - _window(rules[job.pk]) for job in jobs}
    states = {state.job_id: state for state in JobIdleness.objects.filter(job__in=jobs)}
    minutes = _minutes(pods, since, now)
    return [
        _activity(job, rules[job.pk], pods[job.pk], minutes.get(job.pk, []), states.get(job.pk), since, now)
        for job in jobs
    ]


def _window(rule: IdleRule | None) -> timedelta:
    return rule.idle + rule.grace + MARGIN if rule else timedelta(hours=3)


def _activity(
    job: Job,
    rule: IdleRule | None,
    pods: Sequence[Pod],
    minutes: Sequence[ActiveMinute],
    state: JobIdleness | None,
    since: Mapping[int, datetime],
    now: datetime,
) -> JobActivity:
    begin = max([since[job.pk], *(pod.started_at or pod.created_at for pod in pods)])
    verdict = None
    if rule is not None and pods and job.phase == JobPhase.RUNNING:
        warning, until = (state.warning, state.keep_until) if state else (None, None)
        verdict = judge(rule, minutes, begin=begin, keep_until=until, warning=warning, now=now)
    return JobActivity(job, rule, verdict, minutes, begin, state)


def _minutes(
    pods: Mapping[int, Sequence[Pod]], since: Mapping[int, datetime], now: datetime
) -> dict[int, list[ActiveMinute]]:
    """The whole minutes of each job. The use of its GPUs is known if it is known of each of its pods."""
    job_of = {pod.pk: job for job, some in pods.items() for pod in some}
    if not job_of:
        return {}
    used: dict[tuple[int, datetime], list[int | None]] = defaultdict(list)
    for (pod, at), percent in usage.gpu_minutes(list(job_of), since=min(since.values())).items():
        used[job_of[pod], at].append(percent)
    people = _of_people(list(pods), min(since.values()))
    found: dict[int, list[ActiveMinute]] = defaultdict(list)
    for (job, at), percents in sorted(used.items()):
        if since[job] <= at < minute_of(now):
            known = [percent for percent in percents if percent is not None]
            gpu = max(known) if len(known) == len(pods[job]) else None
            found[job].append(ActiveMinute(at, {Signal.GPU: gpu, **people.get((job, at), {})}))
    return found


def _of_people(jobs: Collection[int], since: datetime) -> dict[tuple[int, datetime], dict[Signal, float | None]]:
    """What people did in sessions with the pods of these jobs (primary keys): whoever works in a job needs it."""
    amounts = {signal.value + "_sum": amount for signal, amount in _OF_PEOPLE.items()}
    unknown = Count("at", filter=Q(session__tool=Tool.JUPYTERLAB, kernel=None))
    rows = SessionMinute.objects.filter(session__pod__job__in=jobs, at__gte=since).order_by()
    found = rows.values("session__pod__job", "at").annotate(**amounts, unknown=unknown)
    minutes: dict[tuple[int, datetime], dict[Signal, float | None]] = {}
    for job, at, unknown_kernels, *of_signals in found.values_list("session__pod__job", "at", "unknown", *amounts):
        known: dict[Signal, float | None] = {
            signal: amount or 0 for signal, amount in zip(_OF_PEOPLE, of_signals, strict=True)
        }
        if unknown_kernels and not known[Signal.KERNEL]:
            known[Signal.KERNEL] = None
        minutes[job, at] = known
    return minutes
