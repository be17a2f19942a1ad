"""Counts of jobs agree with the raw rows, in whatever order facts arrive, and with a full rebuild."""

import csv
import html
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest
from django.urls import reverse
from tests.apps.shared_people import db, people, shared_people
from tests.apps.test_measures import attempt, node, tell, training

from hekla.apps import due_work
from hekla.apps.clusters.models import Cluster
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.measures import job_counting, job_reports, services
from hekla.apps.measures.job_reports import JobGroupBy, JobsQuery
from hekla.apps.measures.job_rows import stretches
from hekla.apps.measures.job_sums import ALL, OF_DAYS, OF_HOURS, OF_PAIRS
from hekla.apps.measures.levels import DAY, HOUR, floor
from hekla.apps.measures.models import JobMoment, JobSum, PartJobSum, StaleJobHour
from hekla.apps.measures.selectors import Period
from hekla.controller import tasks
from hekla.controller.periodic import EACH_MINUTE
from hekla.domain import events
from hekla.domain.job_measures import MomentKind, WaitReason, bucket_of
from hekla.lib import clock

__all__ = ["db", "people", "shared_people"]
SECOND = timedelta(seconds=1)
BEGIN = floor(clock.now(), HOUR) - 5 * HOUR
FAILURES = [
    ("OOMKilled", 137, "failed", "memory"),
    ("Error", 3, "failed", "exit_code"),
    ("NodeLost", None, "lost", "node"),
    ("ErrImagePull", None, "failed", "image"),
]


@dataclass
class Fact:
    """A change that reaches the rows and the log at `arrives`."""

    arrives: datetime
    apply: Callable[[], None]


def change(job: Job, event: events.Event, at: datetime, **fields: Any) -> None:
    Job.objects.filter(pk=job.pk).update(**fields)
    tell(job, event, at)


def phase(old: str, new: str, reason: str = "") -> events.JobPhaseChanged:
    return events.JobPhaseChanged(old=old, new=new, reason=reason)


def fail(job: Job, at: datetime, why: tuple[str, int | None, str, str]) -> None:
    pod = attempt(job, 0)
    reason, code, state, _cause = why
    fields = {"reason": reason, "exit_code": code, "phase": state, "finished_at": at}
    Pod.objects.filter(pk=pod.pk).update(node="n1", bound_at=at, started_at=at, **fields)
    change(job, phase("running", "failed", "PodsFailed"), at, phase="failed", finished_at=at)


def life(people: Any, random: Random, name: str) -> Iterator[Fact]:
    """The facts of a job that waits for some reasons, starts (usually), is preempted and restarts, and ends."""

    def late(at: datetime) -> datetime:
        return at + random.choice([0, 0, 3, 50, 4000]) * SECOND

    def step(most: int) -> timedelta:
        return random.randint(1, most) * SECOND

    job = training(people, name, random.randint(1, 3), random.randint(1, 4))
    at = BEGIN + step(7000)
    Job.objects.filter(pk=job.pk).update(submitted_at=at)
    submitted = events.JobSubmitted(name=name, queue="default")
    yield Fact(late(at), lambda at=at: tell(job, submitted, at))
    for cause in random.sample(["capacity", "quota", "gang", "strange"], random.randint(0, 3)):
        at += step(900)
        why = events.JobUnschedulable(reasons=({"cause": cause},))
        yield Fact(late(at), lambda at=at, why=why: tell(job, why, at))
    at += step(900)
    gang = events.GangPhaseChanged(old="inqueue", new="running")
    yield Fact(late(at), lambda at=at: tell(job, gang, at))
    end = random.choice(["completed", "completed", "failed", "failed", "aborted", "", "unstarted"])
    at += step(100)
    if end == "unstarted":
        stop = phase("pending", "aborted")
        yield Fact(late(at), lambda: change(job, stop, at, phase="aborted", finished_at=at))
        return
    started, run = at, phase("pending", "running")
    arrives = late(at)
    yield Fact(arrives, lambda: change(job, run, started, phase="running", started_at=started))
    for _ in range(random.choice([0, 0, 1, 2])):
        at += step(500)
        lost = events.PodEvicted(task="main", index=0, attempt=1, action="preempt")
        again = phase("running", "restarting", "Restarting")
        yield Fact(late(at), lambda at=at, lost=lost: tell(job, lost, at))
        yield Fact(late(at), lambda at=at, again=again: tell(job, again, at))
    last = at + step(3000)
    if end == "failed":
        why = random.choice(FAILURES)
        yield Fact(max(arrives, late(last)), lambda: fail(job, last, why))
    elif end:
        over = phase("running", end)
        yield Fact(max(arrives, late(last)), lambda: change(job, over, last, phase=end, finished_at=last))


def run(people: Any, seed: int) -> datetime:
    """Let the facts arrive, some of them twice, and count again and again meanwhile."""
    random, now = Random(seed), BEGIN
    facts = [fact for number in range(25) for fact in life(people, random, f"job-{number}")]
    facts.sort(key=lambda fact: fact.arrives)
    while facts:
        now += random.randint(60, 1500) * SECOND
        while facts and facts[0].arrives <= now:
            facts.pop(0).apply()
        if random.random() < 0.3 and (event := LoggedEvent.objects.filter(kind="PodEvicted").order_by("?").first()):
            tell(Job.objects.get(uid=event.subject[4:]), events.parse(event.kind, event.payload), event.at)
        services.count_jobs(now=now, settle=random.choice([0, 600]) * SECOND, most_seconds=60)
    services.count_jobs(now=now + HOUR, settle=timedelta(), most_seconds=60)
    assert not StaleJobHour.objects.exists()
    return now + HOUR


def totals(level: int) -> Counter[Any]:
    """Counts and milliseconds by hour, kind and part."""
    found: Counter[Any] = Counter()
    for row in JobSum.objects.filter(level=level):
        key = floor(row.at, HOUR if level < 1440 else DAY), row.what, row.part
        found[key] += row.count
        found[*key, "ms"] += row.milliseconds
    return +found


def raw() -> Counter[Any]:
    """The same from the raw rows and the log, with a rule written anew."""
    found: Counter[Any] = Counter()

    def add(at: datetime, what: str, part: str = "", ms: float = 0) -> None:
        found[floor(at, HOUR), what, part] += 1
        found[floor(at, HOUR), what, part, "ms"] += round(ms)

    causes = {reason: cause for reason, _code, _phase, cause in FAILURES}
    for job in Job.objects.all():
        log = list(LoggedEvent.objects.filter(subject=f"job:{job.uid}"))
        add(job.submitted_at, "submitted")
        for at in {event.at for event in log if event.kind == "PodEvicted"}:
            add(at, "preempted")
        for at in {event.at for event in log if event.payload.get("new") == "restarting"}:
            add(at, "retried")
        if job.started_at:
            wait = (job.started_at - job.submitted_at).total_seconds()
            add(job.started_at, "started", str(bucket_of(round(1000 * wait))), 1000 * wait)
            for reason, seconds in raw_waits(job, log).items():
                add(job.started_at, "waited", reason, 1000 * seconds)
        if job.finished_at:
            if not job.started_at:
                add(job.finished_at, "unstarted", "", 1000 * (job.finished_at - job.submitted_at).total_seconds())
            cause = causes[job.pods.get().reason] if job.phase == "failed" else ""
            add(job.finished_at, "stopped" if job.phase == "aborted" else job.phase, cause)
    return +found


def raw_waits(job: Job, log: list[LoggedEvent]) -> Counter[str]:
    """Seconds by reason: of each second, the last thing that was reported before."""
    found: Counter[str] = Counter()
    known = sorted(
        (event for event in log if event.kind in ("JobUnschedulable", "GangPhaseChanged")), key=lambda e: e.at
    )
    assert job.started_at is not None
    for second in range(round((job.started_at - job.submitted_at).total_seconds())):
        before = [event for event in known if event.at <= job.submitted_at + second * SECOND]
        name = "unknown"
        if before:
            last = before[-1]
            name = "starting" if last.kind == "GangPhaseChanged" else last.payload["reasons"][0]["cause"]
        found[name if name in list(WaitReason) else "unknown"] += 1
    return found


def tables() -> list[Any]:
    return [list(table.objects.order_by("pk").values()) for table in (JobMoment, JobSum, PartJobSum)]


def added(level: int, by: str) -> Counter[Any]:
    """Counts and milliseconds by hour or day, fact, kind and part, from the sums of all facts together."""
    columns = {"queue": "queue_id", "tenant": "tenant_id", "person": "owner_id"}
    found: Counter[Any] = Counter()
    for row in JobSum.objects.filter(level=level):
        values = [str(getattr(row, columns.get(one, one))) for one in by.split(".") if by != ALL]
        key = row.cluster_id, row.at, "|".join(values), row.what, row.part
        found[key] += row.count
        found[*key, "ms"] += row.milliseconds
    return +found


def single(level: int, by: str) -> Counter[Any]:
    """The same from the sums by this fact alone."""
    found: Counter[Any] = Counter()
    for row in PartJobSum.objects.filter(level=level, by=by):
        key = row.cluster_id, row.at, row.key, row.what, row.part
        found[key], found[*key, "ms"] = row.count, row.milliseconds
    return +found


def test_counts_agree_with_raw_rows_and_with_a_rebuild(people: Any) -> None:
    """Late, doubled and reordered facts: difference 0, also after a job and its history are purged."""
    Job.objects.all().delete()
    for name in ("n1", "n2", "n3"):
        node(people, name, BEGIN - HOUR)
    now = run(people, 5)
    want = raw()
    assert {key[1] for key in want} == set(MomentKind)
    assert totals(60) == want
    assert totals(1) == want
    by_day: Counter[Any] = Counter()
    for (at, *rest), amount in want.items():
        by_day[floor(at, DAY), *rest] += amount
    assert totals(1440) == by_day
    for level, names in ((60, OF_HOURS), (1440, OF_HOURS | OF_DAYS | OF_PAIRS)):
        assert all(single(level, by) == added(level, by) for by in (ALL, *names))
    places = JobMoment.objects.filter(what="failed").exclude(exit_code=None)
    assert sum(row.count for row in PartJobSum.objects.filter(by="exit_code")) == places.count()
    before = tables()
    services.rebuild_jobs(now=now)
    assert tables() == before
    Job.objects.filter(phase="completed").delete()
    services.rebuild_jobs(now=now)
    assert tables() == before


def test_a_policy_that_stops_a_job_after_an_eviction_counts_as_a_failure(people: Any) -> None:
    """A person who stops it is no failure."""
    now = clock.now()
    node(people, "n1", now)
    for name, code in (("policy", "preempted"), ("crash", "exit_code")):
        job = training(people, name, 1, 1)
        pod = attempt(job, 0)
        is_evicted = code == "preempted"
        facts = () if is_evicted else ({"code": "pod_failed"},)
        Pod.objects.filter(pk=pod.pk).update(
            phase="failed",
            evicted=is_evicted,
            reason="Stopped" if is_evicted else "Error",
            exit_code=9,
            finished_at=now,
        )
        if is_evicted:
            tell(job, events.PodEvicted(task="main", index=0, attempt=1, action="reclaim"), now)
        stop = events.JobPhaseChanged(old="running", new="aborting", reason="AbortRequested", message_facts=facts)
        change(job, stop, now, phase="aborted", finished_at=now)
        services.count_jobs(now=now, settle=timedelta(), most_seconds=60)
        assert JobMoment.objects.get(job_id=job.pk, what="failed").part == code
    LoggedEvent.objects.filter(subject=f"job:{job.uid}", kind="JobPhaseChanged").update(actor_id=people.alice.pk)
    services.rebuild_jobs(now=now)
    assert not JobMoment.objects.filter(job_id=job.pk, what="failed").exists()
    assert JobMoment.objects.filter(job_id=job.pk, what="stopped").exists()


def test_counting_has_work_only_with_news_of_jobs(people: Any) -> None:
    name = tasks.count_jobs.name
    assert name in EACH_MINUTE
    services.count_jobs(now=clock.now(), settle=timedelta(), most_seconds=60)
    assert due_work.tasks_with_work([name], now=clock.now()) == []
    people.submit("news")
    assert due_work.tasks_with_work([name], now=clock.now()) == [name]


def test_past_jobs_are_counted_at_once(people: Any) -> None:
    job = people.submit("past")
    Job.objects.filter(pk=job.pk).update(submitted_at=clock.now() - 5 * HOUR)
    services.count_jobs(now=clock.now(), most_seconds=60)
    assert JobSum.objects.filter(level=60, at__lt=clock.now() - 4 * HOUR).exists()


def test_old_sums_and_moments_are_deleted(people: Any) -> None:
    people.submit("old")
    services.count_jobs(now=clock.now(), settle=timedelta(), most_seconds=60)
    assert JobSum.objects.filter(level=1).exists()
    services.count_jobs(now=clock.now() + 3 * DAY)
    assert not JobSum.objects.filter(level=1).exists()
    services.count_jobs(now=clock.now() + 402 * DAY)
    assert not JobMoment.objects.exists()
    assert set(JobSum.objects.values_list("level", flat=True)) == {1440}


def test_days_are_read_once_they_are_over() -> None:
    """The present day, and for two hours the one before, are read from hours."""
    day = floor(BEGIN, DAY)
    early, late = day + HOUR, day + 3 * HOUR
    week = (day - 7 * DAY, day + DAY)
    assert stretches(*week, DAY, now=late) == [(DAY, day - 7 * DAY, day), (HOUR, day, day + DAY)]
    assert stretches(*week, DAY, now=early) == [(DAY, day - 7 * DAY, day - DAY), (HOUR, day - DAY, day + DAY)]
    shifted = (day - 2 * DAY + HOUR, day + HOUR)
    parts = [(HOUR, shifted[0], day - DAY), (DAY, day - DAY, day), (HOUR, day, shifted[1])]
    assert stretches(*shifted, DAY, now=late) == parts
    assert stretches(*week, HOUR, now=late) == [(HOUR, *week)]


@pytest.fixture
def counted(people: Any) -> Any:
    """Three jobs of the last hour: one waited a minute and completed, one waited ten and failed on n1, one waits."""
    Cluster.objects.filter(pk=people.cluster.pk).update(kind="local")
    node(people, "n1", clock.now() - HOUR)
    now = clock.now()
    people.jobs = [training(people, name, gpus, 1) for name, gpus in (("good", 1), ("bad", 4), ("late", 1))]
    good, bad, late = people.jobs
    Job.objects.filter(pk__in=[job.pk for job in people.jobs]).update(submitted_at=now - timedelta(minutes=20))
    for job, minutes in ((good, 1), (bad, 10)):
        started = now - timedelta(minutes=20 - minutes)
        why = events.JobUnschedulable(reasons=({"cause": "quota"},))
        tell(job, why, now - timedelta(minutes=20))
        change(job, phase("pending", "running"), started, phase="running", started_at=started)
    over = now - timedelta(minutes=5)
    change(good, phase("running", "completed"), over, phase="completed", finished_at=over)
    fail(bad, over, FAILURES[0])
    Job.objects.filter(pk=late.pk).update(waiting=[{"cause": "capacity"}])
    services.roll_up(now=now, most_seconds=60)
    services.count_jobs(now=now, settle=timedelta(), most_seconds=60)
    return people


def rest(as_: Any, user: Any, name: str, **query: str) -> Any:
    response = as_(user).get(reverse(f"api:v1:{name}"), query)
    return response.json() if response.status_code == 200 else response.status_code


def test_waiting_times_by_rest(counted: Any, as_: Any) -> None:
    """Of the jobs of one's tenants; outside of them nothing exists."""
    found = rest(as_, counted.bob, "waiting_of_jobs")
    counts = {name: n for name, n in found["total"]["counts"].items() if n}
    assert counts == {"submitted": 3, "started": 2, "completed": 1, "failed": 1}
    waits = found["total"]["wait_seconds"]
    assert 60 <= waits["p50"] <= 72
    assert 600 <= waits["p99"] <= 720
    assert round(waits["mean"]) == 330
    assert found["total"]["waited_seconds_by_reason"] == {"quota": 660.0}
    assert found["waiting"]["count"] == 1
    assert found["waiting"]["reasons"] == {"capacity": 1}
    assert 1200 <= found["waiting"]["longest_seconds"] < 1300
    assert sum(point["counts"]["started"] for point in found["points"]) == 2
    assert [(part["name"], part["key"], part["waiting"]) for part in found["parts"]] == [("default", "default", 1)]
    for user, query in ((counted.charlie, {"tenant": "lab"}), (counted.ada, {"cluster": "none"})):
        assert rest(as_, user, "waiting_of_jobs", **query) == 404
    assert sum(rest(as_, counted.charlie, "waiting_of_jobs")["total"]["counts"].values()) == 0
    assert rest(as_, counted.charlie, "waiting_of_jobs")["waiting"]["count"] == 0
    assert rest(as_, counted.ada, "waiting_of_jobs", size="7") == 400


def test_reports_of_days_agree_with_those_of_hours(counted: Any, as_: Any) -> None:
    """Two days later whole days are read, by one fact or by several, and for few parts in two steps."""
    later = clock.now() + 2 * DAY
    services.count_jobs(now=later, settle=timedelta(), most_seconds=60)
    assert not StaleJobHour.objects.exists()
    with clock.simulated(lambda: later):
        for period in ("week", "month", "quarter"):
            for by in ("queue", "tenant", "person", "size", "kind", "model", "cluster"):
                for filters in (
                    {},
                    {"queue": "default"},
                    {"kind": "training"},
                    {"kind": "training", "person": "alice"},
                ):
                    found = rest(as_, counted.ada, "waiting_of_jobs", period=period, by=by, **filters)
                    assert found["total"]["counts"]["started"] == 2
                    assert sum(part["counts"]["started"] for part in found["parts"]) == 2
            found = rest(as_, counted.ada, "failures_of_jobs", period=period)
            assert [(one["name"], one["failed"]) for one in found["nodes"]] == [("n1", 1)]
            assert rest(as_, counted.bob, "failures_of_jobs", period=period)["nodes"] == found["nodes"]
        query = JobsQuery(Period.MONTH, by=JobGroupBy.SIZE)
        report = job_reports.jobs_report(counted.ada, query, now=later, most_parts=1)
        assert (len(report.parts), report.more_parts) == (1, 1)


def test_filters_and_parts_of_jobs(counted: Any, as_: Any) -> None:
    names = {"queue": "default", "tenant": "Lab", "person": "alice", "kind": "training", "cluster": "sim"}
    for by, name in names.items():
        (part,) = rest(as_, counted.ada, "waiting_of_jobs", by=by)["parts"]
        assert part["name"] == name
        narrowed = rest(as_, counted.ada, "waiting_of_jobs", **{by: part["key"]})
        assert narrowed["total"]["counts"]["started"] == 2
    sizes = rest(as_, counted.ada, "waiting_of_jobs", by="size")["parts"]
    assert {part["name"]: part["counts"]["started"] for part in sizes} == {"1": 1, "2-4": 1}
    assert rest(as_, counted.ada, "waiting_of_jobs", size="2-4")["total"]["counts"]["started"] == 1
    assert rest(as_, counted.ada, "waiting_of_jobs", model="A100")["total"]["counts"]["started"] == 1
    assert rest(as_, counted.ada, "waiting_of_jobs", person="nobody")["total"]["counts"]["started"] == 0
    Cluster.objects.filter(pk=counted.cluster.pk).update(kind="simulated")
    assert rest(as_, counted.ada, "waiting_of_jobs")["total"]["counts"]["started"] == 0
    assert rest(as_, counted.ada, "waiting_of_jobs", cluster="sim")["is_simulated"]


def test_kinds_of_jobs_are_those_of_ones_tenants(counted: Any) -> None:
    """People choose them freely: a kind may be the name of a secret project."""
    now = clock.now()
    found = {user.username: job_reports.kinds(user, now=now) for user in (counted.ada, counted.bob, counted.charlie)}
    assert found == {"ada": ["training"], "bob": ["training"], "charlie": []}


def test_a_job_that_is_purged_during_a_count_stays_counted(counted: Any) -> None:
    before = tables()
    gone = counted.jobs[0].pk
    Job.objects.filter(pk=gone).delete()
    job_counting._refresh([gone], now=clock.now())
    assert tables() == before


def test_failures_by_rest(counted: Any, as_: Any) -> None:
    found = rest(as_, counted.bob, "failures_of_jobs")
    assert found["total"]["failed_by_cause"] == {"memory": 1}
    assert found["nodes"] == [{"name": "n1", "failed": 1, "main_cause": "memory"}]
    assert found["exit_codes"] == [{"name": "137", "failed": 1, "main_cause": "memory"}]
    assert found["images"] == []
    assert rest(as_, counted.charlie, "failures_of_jobs")["nodes"] == []


def page(as_: Any, user: Any, name: str, **query: str) -> str:
    response = as_(user).get(reverse(f"operations:{name}"), query)
    assert response.status_code == 200
    return response.content.decode()


def test_pages_lead_from_a_figure_to_its_jobs(counted: Any, as_: Any) -> None:
    good, bad, late = (reverse("jobs:detail", args=[job.uid]) for job in counted.jobs)
    text = page(as_, counted.bob, "waiting")
    assert "10 min" in text
    assert '"barmode":"stack"' in text
    assert "1 job waits" in text
    link = re.search(r'href="([^"]+of=waited[^"]*part=quota)"', text)
    assert link is not None
    jobs = as_(counted.bob).get(html.unescape(link[1])).content.decode()
    assert good in jobs
    assert bad in jobs
    assert late in page(as_, counted.bob, "waiting_now")
    text = page(as_, counted.bob, "failures")
    assert "Out of memory" in text
    link = re.search(r'href="([^"]+of=failed[^"]*node=n1)"', text)
    assert link is not None
    jobs = as_(counted.bob).get(html.unescape(link[1])).content.decode()
    assert bad in jobs
    assert good not in jobs
    for name in ("counted", "waiting_now"):
        assert "No jobs" in page(as_, counted.charlie, name)
        assert as_(counted.charlie).get(reverse(f"operations:{name}"), {"tenant": "lab"}).status_code == 404


def test_files_have_the_figures(counted: Any, as_: Any) -> None:
    rows = list(csv.DictReader(page(as_, counted.bob, "waiting_file", period="hour").splitlines()))
    assert len(rows) == 60
    assert sum(int(row["started"]) for row in rows) == 2
    assert len([row for row in rows if row["wait_p95_seconds"]]) == 2
    rows = list(csv.DictReader(page(as_, counted.bob, "failures_file").splitlines()))
    assert sum(int(row["memory"]) for row in rows) == 1
    assert sum(int(row["ended"]) for row in rows) == 2


@pytest.mark.parametrize("until", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59-14:00", "\0"])
def test_strange_addresses_are_bounded(people: Any, as_: Any, until: str) -> None:
    for name in ("waiting", "failures", "counted", "waiting_now", "waiting_file", "failures_file"):
        page(as_, people.bob, name, until=until, size="\0", kind="\0", of="x", exit_code="9" * 30, node="\0")
    assert "No jobs in this period" in page(as_, people.charlie, "waiting")
