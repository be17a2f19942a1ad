"""Questions about waiting times, throughput and failures of jobs. People see the jobs of their tenants."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from django.db.models import Aggregate, Count, DateTimeField, Min, Model, Q, QuerySet, Sum
from django.db.models.fields.json import KT
from django.utils.translation import gettext as _

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.clusters.models import Cluster
from hekla.apps.jobs.models import Job
from hekla.apps.measures.job_rows import COLUMNS, JobRows, Stretch, stretches
from hekla.apps.measures.levels import DAY, MINUTE, floor
from hekla.apps.measures.models import JobMoment, JobsCursor, JobSum, PartJobSum
from hekla.apps.measures.selectors import Chosen, MeasuresQuery
from hekla.apps.queues.models import Queue
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.domain.job_measures import RESULTS, FailureCause, MomentKind, WaitReason, quantile
from hekla.domain.phases import JobPhase

MOST_PLACES = 20
MOST_JOBS = 200
_MONTH = timedelta(days=31)


class JobGroupBy(StrEnum):
    """What the parts of a report of jobs are."""

    QUEUE = "queue"
    TENANT = "tenant"
    PERSON = "person"
    SIZE = "size"
    KIND = "kind"
    MODEL = "model"
    CLUSTER = "cluster"


_NAMED: dict[JobGroupBy, tuple[type[Model], str, str]] = {
    JobGroupBy.QUEUE: (Queue, "name", "name"),
    JobGroupBy.TENANT: (Tenant, "name", "slug"),
    JobGroupBy.PERSON: (User, "username", "username"),
    JobGroupBy.CLUSTER: (Cluster, "name", "name"),
}


class FailurePlace(StrEnum):
    """By what failures are counted beside their cause."""

    NODE = "node"
    IMAGE = "image"
    EXIT_CODE = "exit_code"


@dataclass(frozen=True, slots=True)
class JobsQuery(MeasuresQuery):
    """A query of jobs. `by`: the parts."""

    person: str = ""
    kind: str = ""
    size: str = ""
    by: JobGroupBy = JobGroupBy.QUEUE


@dataclass(frozen=True, slots=True)
class JobFigures:
    """Counts and milliseconds of moments, by kind and part."""

    counts: Mapping[tuple[str, str], int]
    milliseconds: Mapping[tuple[str, str], int]

    def count(self, what: MomentKind, part: str | None = None) -> int:
        """How many moments there were of a kind, or of one part of it."""
        return sum(n for (kind, one), n in self.counts.items() if kind == what and part in (None, one))

    @property
    def ended(self) -> int:
        """How many jobs ended."""
        return sum(self.count(what) for what in RESULTS)

    def wait(self, part: float) -> float | None:
        """A quantile of the waiting times of the jobs that started, in seconds; None without such jobs."""
        buckets = {int(one): n for (kind, one), n in self.counts.items() if kind == MomentKind.STARTED}
        return quantile(buckets, part)

    @property
    def mean_wait(self) -> float | None:
        """The mean waiting time of the jobs that started, in seconds."""
        count = self.count(MomentKind.STARTED)
        whole = sum(ms for (kind, _part), ms in self.milliseconds.items() if kind == MomentKind.STARTED)
        return whole / 1000 / count if count else None

    @property
    def reasons(self) -> dict[WaitReason, float]:
        """Seconds that the jobs that started had waited, by reason, the longest first."""
        found = {WaitReason(one): ms / 1000 for (kind, one), ms in self.milliseconds.items() if kind == "waited"}
        return dict(sorted(found.items(), key=lambda pair: -pair[1]))

    @property
    def causes(self) -> dict[FailureCause, int]:
        """How many jobs failed, by cause, the most frequent first."""
        found = {FailureCause(one): n for (kind, one), n in self.counts.items() if kind == MomentKind.FAILED}
        return dict(sorted(found.items(), key=lambda pair: -pair[1]))


@dataclass(frozen=True, slots=True)
class JobsPart:
    """One part of a report. `key`: by which it can be filtered; empty if it cannot. `waiting`: jobs that wait now."""

    name: str
    key: str
    figures: JobFigures
    waiting: int


@dataclass(frozen=True, slots=True)
class WaitingNow:
    """The jobs that wait for their first start now: by reason, and how long they have waited so far, in seconds."""

    count: int
    longest: float
    half: float
    reasons: Mapping[WaitReason, int]


@dataclass(frozen=True, slots=True)
class JobsReport:
    """What happened to jobs from `begin` until `end`, as far as it is counted (`counted_until`; None: not at all).

    `before`: of the period before. `waiting`: None if the period is past. `more_parts`: how many parts are left out.
    """

    query: JobsQuery
    begin: datetime
    end: datetime
    counted_until: datetime | None
    is_simulated: bool
    points: Mapping[datetime, JobFigures]
    total: JobFigures
    before: JobFigures
    parts: list[JobsPart]
    waiting: WaitingNow | None
    more_parts: int = 0


def jobs_report(user: User, query: JobsQuery, *, now: datetime, most_parts: int | None = None) -> JobsReport:
    """The report for this person. Raises NotFound for names that they cannot see.

    `most_parts`: only so many parts, those with most jobs; 0: none, and none is counted; None: all.
    """
    chosen = Chosen.of(query, user)
    rows = _rows_of(chosen, query)
    begin, end = query.bounds(now)
    waiting = _waiting(chosen, query) if end >= now else None
    points = _points(rows, stretches(begin, end, query.step, now=now), query.step)
    before = _points(rows, _coarse(query, *query.before(now).bounds(now), now=now), query.step)
    times = (begin + query.step * number for number in range((end - begin) // query.step))
    parts, more = list[JobsPart](), 0
    if most_parts != 0:
        parts, more = _parts(rows, _coarse(query, begin, end, now=now), waiting, query.by, most_parts)
    return JobsReport(
        query=query,
        begin=begin,
        end=end,
        counted_until=JobsCursor.objects.values_list("at", flat=True).first(),
        is_simulated=chosen.is_simulated,
        points={at: points.get(at, _NONE) for at in times},
        total=_together(points.values()),
        before=_together(before.values()),
        parts=parts,
        waiting=None if waiting is None else _waiting_now(waiting, now),
        more_parts=more,
    )


_NONE = JobFigures({}, {})


def _matching(chosen: Chosen, query: JobsQuery) -> Q:
    """The condition on sums and moments."""
    values = {"model": query.model, "kind": query.kind, "size": query.size}
    condition = chosen.of_holders & Q(**{name: value for name, value in values.items() if value})
    if not query.person:
        return condition
    return condition & Q(owner_id__in=User.objects.filter(username=query.person).values("pk"))


def _rows_of(chosen: Chosen, query: JobsQuery) -> JobRows:
    """The sums that the query means."""
    filters: dict[str, Sequence[Any]] = {
        name: [value] for name in ("model", "kind", "size") if (value := getattr(query, name))
    }
    if chosen.queue is not None:
        filters["queue"] = [chosen.queue]
    if chosen.tenants is not None:
        filters["tenant"] = sorted(chosen.tenants)
    if query.person:
        filters["person"] = list(User.objects.filter(username=query.person).values_list("pk", flat=True))
    return JobRows(chosen.clusters, filters)


def _coarse(query: JobsQuery, begin: datetime, end: datetime, *, now: datetime) -> list[Stretch]:
    """This time in as few sums as possible."""
    return stretches(begin, end, MINUTE if query.step == MINUTE else DAY, now=now)


def _grouped(rows: QuerySet[Any], column: str) -> dict[Any, JobFigures]:
    found: dict[Any, tuple[dict[tuple[str, str], int], dict[tuple[str, str], int]]] = defaultdict(lambda: ({}, {}))
    sums = rows.order_by().values_list(column, "what", "part").annotate(n=Sum("count"), ms=Sum("milliseconds"))
    for key, what, part, count, milliseconds in sums:
        found[key][0][what, part], found[key][1][what, part] = int(count), int(milliseconds)
    return {key: JobFigures(*figures) for key, figures in found.items()}


def _together(figures: Iterable[JobFigures]) -> JobFigures:
    counts, milliseconds = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for one in figures:
        counts.update(one.counts)
        milliseconds.update(one.milliseconds)
    return JobFigures(counts, milliseconds)


def _points(rows: JobRows, times: Sequence[Stretch], step: timedelta) -> dict[datetime, JobFigures]:
    """The figures of each step that has some."""
    found: dict[datetime, list[JobFigures]] = defaultdict(list)
    for level, begin, end in times:
        sums = rows.of(level)[0].filter(at__gte=begin, at__lt=end)
        for at, figures in _grouped(sums, "at").items():
            found[floor(at, step)].append(figures)
    return {at: _together(figures) for at, figures in found.items()}


def _parts(
    rows: JobRows, times: Sequence[Stretch], waiting: QuerySet[JobMoment] | None, by: JobGroupBy, most: int | None
) -> tuple[list[JobsPart], int]:
    """The parts, those with most jobs that ended or wait first, and how many are left out.

    With a limit, waiting times are read only of those that are left. Parts whose jobs only started are not left out.
    """
    numbers: dict[str, int] = {}
    if waiting is not None:
        column = COLUMNS.get(by.value, by.value)
        numbers = {str(key): n for key, n in waiting.order_by().values_list(column).annotate(n=Count("job_id"))}
    chosen, more = None, 0
    if most is not None:
        jobs = _jobs_by_part(rows, times, by)
        jobs.update(numbers)
        if len(jobs) > most:
            chosen, more = sorted(jobs, key=lambda key: (-jobs[key], key))[:most], len(jobs) - most
    found = _by_part(rows, times, by, chosen)
    keys = found.keys() | numbers.keys() if chosen is None else set(chosen)
    names = _names(by, keys)
    parts = [JobsPart(*names.get(key, _unnamed(by, key)), found.get(key, _NONE), numbers.get(key, 0)) for key in keys]
    return sorted(parts, key=lambda part: (-part.figures.ended - part.waiting, part.name)), more


def _jobs_by_part(rows: JobRows, times: Sequence[Stretch], by: JobGroupBy) -> Counter[str]:
    """How many jobs ended, by part, also those of parts with submissions only."""
    found, is_result = Counter[str](), Q(what__in=RESULTS)
    for level, begin, end in times:
        sums, column = rows.of(level, by.value)
        counted = sums.filter(at__gte=begin, at__lt=end, what__in=[*RESULTS, MomentKind.SUBMITTED]).order_by()
        for key, count in counted.values_list(column).annotate(n=Sum("count", filter=is_result, default=0)):
            found[str(key)] += int(count)
    return found


def _by_part(
    rows: JobRows, times: Sequence[Stretch], by: JobGroupBy, keys: Collection[str] | None
) -> dict[str, JobFigures]:
    """The figures by part; only of these, unless None."""
    found: dict[str, list[JobFigures]] = defaultdict(list)
    for level, begin, end in times:
        sums, column = rows.of(level, by.value, keys)
        for key, figures in _grouped(sums.filter(at__gte=begin, at__lt=end), column).items():
            found[str(key)].append(figures)
    return {key: _together(figures) for key, figures in found.items()}


def _names(by: JobGroupBy, ids: Iterable[str]) -> dict[str, tuple[str, str]]:
    """The names and keys of these rows."""
    if by not in _NAMED:
        return {}
    table, name, key = _NAMED[by]
    found = table._default_manager.filter(pk__in=ids).values_list("pk", name, key)
    return {str(pk): (label, value) for pk, label, value in found}


def _unnamed(by: JobGroupBy, key: str) -> tuple[str, str]:
    """The name and key of a part that is its own name, or whose row was deleted."""
    return (_("deleted (%(number)d)") % {"number": int(key)}, "") if by in _NAMED else (key, key)


def _waiting(chosen: Chosen, query: JobsQuery) -> QuerySet[JobMoment]:
    """The submissions of jobs that wait for their first start now. Jobs of others are not read: there may be many."""
    jobs = Job.objects.filter(chosen.of_holders, phase=JobPhase.PENDING, started_at=None, deleted_at=None)
    matching = _matching(chosen, query)
    return JobMoment.objects.filter(matching, what=MomentKind.SUBMITTED, job_id__in=jobs.values("pk"))


class _Median(Aggregate):
    function = "PERCENTILE_DISC"
    template = "%(function)s(0.5) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = DateTimeField()


def _waiting_now(waiting: QuerySet[JobMoment], now: datetime) -> WaitingNow:
    facts = waiting.aggregate(n=Count("job_id"), first=Min("at"), half=_Median("at"))
    jobs = Job.objects.filter(pk__in=waiting.values("job_id")).order_by()
    causes = jobs.annotate(cause=KT("waiting__0__cause")).values_list("cause").annotate(n=Count("pk"))
    reasons: Counter[WaitReason] = Counter()
    for cause, count in causes:
        reasons[WaitReason(cause) if cause in list(WaitReason) else WaitReason.UNKNOWN] += count
    longest, half = (_seconds(now, facts[name]) for name in ("first", "half"))
    return WaitingNow(facts["n"], longest, half, dict(reasons.most_common()))


def _seconds(now: datetime, since: datetime | None) -> float:
    return max((now - since).total_seconds(), 0.0) if since else 0.0


def failure_places(
    user: User, query: JobsQuery, place: FailurePlace, *, now: datetime
) -> list[tuple[str, int, FailureCause]]:
    """Where most jobs failed: the node, image or exit code, how often, and the most frequent cause. Raises NotFound.

    At most `MOST_PLACES`, without failures of unknown place. Moments are kept 400 days.
    """
    chosen, found = Chosen.of(query, user), defaultdict[str, Counter[str]](Counter)
    rows, moments = _rows_of(chosen, query), JobMoment.objects.filter(_matching(chosen, query), what=MomentKind.FAILED)
    longest = query.step if rows.filters else DAY  # sums of days have no filters
    for level, begin, end in stretches(*query.bounds(now), longest, now=now):
        if level == DAY and not rows.filters:
            sums = rows.places(place.value).filter(at__gte=begin, at__lt=end).order_by().values_list("key", "part")
            counts = sums.annotate(n=Sum("count"))
        else:
            failed = moments.filter(at__gte=begin, at__lt=end).exclude(**_no_place(place)).order_by()
            counts = failed.values_list(place.value, "part").annotate(n=Count("job_id"))
        for where, part, count in counts:
            found[str(where)][part] += int(count)
    most = sorted(found.items(), key=lambda pair: (-pair[1].total(), pair[0]))[:MOST_PLACES]
    return [(where, counts.total(), FailureCause(counts.most_common(1)[0][0])) for where, counts in most]


def _no_place(place: FailurePlace) -> dict[str, object]:
    return {"exit_code": None} if place is FailurePlace.EXIT_CODE else {place.value: ""}


@dataclass(frozen=True, slots=True)
class CountedJob:
    """A moment that a figure counts, and its job; None if it was purged."""

    moment: JobMoment
    job: Job | None

    @property
    def waited(self) -> timedelta:
        """How long the job waited until then."""
        return timedelta(milliseconds=self.moment.milliseconds)


def counted_jobs(
    user: User,
    query: JobsQuery,
    what: MomentKind,
    *,
    part: str = "",
    places: Mapping[FailurePlace, str] | None = None,
    longest: bool = False,
    now: datetime,
) -> list[CountedJob]:
    """The newest jobs that a figure counts, or those that waited longest; at most `MOST_JOBS` + 1. Raises NotFound.

    `part`: only this cause or reason. `places`: only failures there.
    """
    begin, end = query.bounds(now)
    rows = JobMoment.objects.filter(_matching(Chosen.of(query, user), query), what=what, at__gte=begin, at__lt=end)
    if part:
        rows = rows.filter(part=part)
    for place, where in (places or {}).items():
        rows = rows.filter(**{place.value: where})
    return _with_jobs(rows.order_by("-milliseconds" if longest else "-at", "-job_id"))


def waiting_jobs(user: User, query: JobsQuery) -> list[CountedJob]:
    """The jobs that wait for their first start now, the longest first; at most `MOST_JOBS` + 1. Raises NotFound."""
    return _with_jobs(_waiting(Chosen.of(query, user), query).order_by("at", "job_id"))


def _with_jobs(moments: QuerySet[JobMoment]) -> list[CountedJob]:
    rows = list(moments[: MOST_JOBS + 1])
    jobs = Job.objects.filter(pk__in=[row.job_id for row in rows], deleted_at=None).defer("spec")
    known = {job.pk: job for job in jobs.select_related("owner", "tenant", "queue")}
    return [CountedJob(row, known.get(row.job_id)) for row in rows]


def kinds(user: User, *, now: datetime) -> list[str]:
    """The kinds of jobs of this person's tenants that were counted in the last month, by name."""
    if accounts.may(user, Permission.SEE_EVERYTHING):
        rows: QuerySet[Any] = PartJobSum.objects.filter(by=JobGroupBy.KIND.value)
        column = "key"
    else:
        rows, column = JobSum.objects.filter(tenant_id__in=tenancy.visible_ids(user)), "kind"
    is_present = Q(level=1440, at__gte=now - _MONTH) | Q(level=60, at__gte=now - 2 * DAY)
    return list(rows.filter(is_present).order_by(column).values_list(column, flat=True).distinct())
