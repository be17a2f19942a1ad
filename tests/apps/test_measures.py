"""Measures agree with the raw rows to the microsecond, in whatever order facts arrive, and with a full rebuild."""

import csv
import html
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from functools import partial
from random import Random
from typing import Any

import pytest
from django.db.models import F, Sum
from django.urls import reverse
from tests.apps.shared_people import db, people, shared_people

from hekla.apps import due_work
from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Cluster, Node, NodeFacts
from hekla.apps.event_log.models import LoggedEvent, Numbering
from hekla.apps.event_log.services import CONTROLLER, PLATFORM, record, unit_of_work
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.measures import services, stale, sums
from hekla.apps.measures.levels import DAY, HOUR, MEASURED, PARTS, floor
from hekla.apps.measures.models import (
    ClusterGpuTime,
    GpuCapacity,
    GpuHolding,
    HolderCost,
    HolderGpuTime,
    MeasuredCluster,
    NodeGpuTime,
    PartCost,
    PartGpuTime,
    StaleHour,
)
from hekla.apps.measures.selectors import stretches
from hekla.apps.prices.models import PriceList
from hekla.apps.usage.models import Sample
from hekla.controller import tasks
from hekla.controller.periodic import EACH_MINUTE
from hekla.domain import events
from hekla.domain.gpu_time import HELD, GpuClass
from hekla.lib import clock

__all__ = ["db", "people", "shared_people"]
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
BEGIN = floor(clock.now(), HOUR) - 5 * HOUR
END = BEGIN + 2 * HOUR
CLASSES = [one.value for one in GpuClass]
GPUS = {"n1": 8, "n2": 4, "n3": 2}


@dataclass
class Fact:
    """A change that happens at `at`, and reaches the rows and the log at `arrives`."""

    at: datetime
    arrives: datetime
    apply: Callable[[], None]


def node(people: Any, name: str, at: datetime, **more: Any) -> None:
    facts = NodeFacts(
        name,
        {"cpu": "64", "memory": "8Gi", "nvidia.com/gpu": str(GPUS[name])},
        {"nvidia.com/gpu.product": "A100"},
        **more,
    )
    clusters.observe_nodes(people.cluster, [facts], now=at)


def training(people: Any, name: str, gpus: int, replicas: int) -> Job:
    task = {
        "name": "main",
        "replicas": replicas,
        "command": ["true"],
        "resources": {"cpu": "1", "memory": "1536Mi", "nvidia.com/gpu": str(gpus)},
    }
    return people.submit(name, tasks=[task])


def tell(job: Job, event: events.Event, at: datetime) -> None:
    with unit_of_work():
        record(event, subject=f"job:{job.uid}", tenant=job.tenant_id, actor=CONTROLLER, at=at)


def phase(pod: Pod, old: str, new: str) -> events.PodPhaseChanged:
    return events.PodPhaseChanged(task="main", index=pod.index, attempt=pod.attempt, old=old, new=new)


def change(pod: Pod, event: events.Event, at: datetime, **fields: Any) -> None:
    Pod.objects.filter(pk=pod.pk).update(**fields)
    tell(pod.job, event, at)


def attempt(job: Job, index: int, number: int = 1, version: int = 1) -> Pod:
    return Pod.objects.create(
        job=job, task="main", index=index, attempt=number, version=version, slot=index, address="", created_at=BEGIN
    )


def life(random: Random, pod: Pod, bound: datetime, late: Callable[[], timedelta]) -> Iterator[Fact]:
    """The facts of one attempt: it is bound, starts (usually), and ends (usually), in a random way."""
    name, ends = random.choice(list(GPUS)), random.choice(["succeeded", "failed", "evicted", "stopped", ""])
    start, end = bound + random.randint(0, 300) * SECOND, bound + random.randint(400, 2900) * SECOND
    ref = {"task": "main", "index": pod.index, "attempt": pod.attempt}
    arrives = bound + late()
    bind = events.PodBound(**ref, node=name)
    yield Fact(bound, arrives, lambda: change(pod, bind, bound, phase="bound", node=name, bound_at=bound))
    if random.random() < 0.9:
        arrives = max(arrives, start + late())
        run = phase(pod, "bound", "running")
        yield Fact(start, arrives, lambda: change(pod, run, start, phase="running", started_at=start))
    if ends in ("evicted", "stopped"):
        arrives = max(arrives, end - 5 * SECOND)
        stop = (
            events.PodEvicted(**ref, action="preempt")
            if ends == "evicted"
            else events.PodStopRequested(**ref, reason="stop")
        )
        is_evicted = ends == "evicted"
        yield Fact(end, arrives, lambda: change(pod, stop, end, stopping=True, evicted=is_evicted))
    if ends:
        arrives, final = max(arrives, end + late()), "succeeded" if ends == "succeeded" else "failed"
        over = phase(pod, "running", final)
        yield Fact(end, arrives, lambda: change(pod, over, end, phase=final, finished_at=end))


def workload(people: Any, seed: int) -> list[Fact]:
    random = Random(seed)

    def late() -> timedelta:
        return random.choice([0, 0, 3, 40, 2000]) * SECOND

    found = []
    for number in range(9):
        job = training(people, f"job-{number}", random.randint(1, 3), random.randint(1, 2))
        bound = BEGIN + random.randint(100, 4000) * SECOND
        for index in range(job.replicas):
            pod = attempt(job, index)
            found += list(life(random, pod, bound, late))
            minutes = range(120) if random.random() < 0.8 else ()
            Sample.objects.bulk_create(
                Sample(
                    pod=pod, at=BEGIN + m * MINUTE + 7 * SECOND, cpu_ms=m, memory_bytes=1, span_seconds=10,
                    gpu_thousandths=random.choice([0, 900]),
                )
                for m in minutes
            )  # fmt: skip
        if random.random() < 0.3:
            again = bound + 3000 * SECOND
            found.append(Fact(again, again + late(), partial(_restart, job, again)))
    return sorted(found, key=lambda fact: fact.arrives)


def _restart(job: Job, at: datetime) -> None:
    Job.objects.filter(pk=job.pk).update(version=2)
    attempt(job, 0, 2, 2)
    tell(job, events.PodCreated(task="main", index=0, attempt=2), at)


def nodes_change(people: Any) -> list[Fact]:
    """A node that is down for a while, one that is cordoned, and one that goes."""
    times = {key: BEGIN + n * SECOND for key, n in (("down", 1201), ("up", 2807), ("drain", 4000), ("gone", 6000))}

    def cordon() -> None:
        clusters.cordon(Node.objects.get(name="n1"), cordoned=True, actor=PLATFORM, now=times["drain"])

    def lose() -> None:
        with unit_of_work():
            event = events.NodeChanged(node="n3", ready=False, present=False)
            record(event, subject=f"cluster:{people.cluster.pk}", actor=CONTROLLER, at=times["gone"])

    return [
        Fact(times["down"], times["down"], lambda: node(people, "n2", times["down"], is_ready=False)),
        Fact(times["up"], times["up"] + 500 * SECOND, lambda: node(people, "n2", times["up"])),
        Fact(times["drain"], times["drain"], cordon),
        Fact(times["gone"], times["gone"], lose),
    ]


def run(people: Any, seed: int) -> None:
    """Let the facts arrive, and roll up again and again meanwhile."""
    for name in GPUS:
        node(people, name, BEGIN)
    facts = sorted([*workload(people, seed), *nodes_change(people)], key=lambda fact: fact.arrives)
    random, now = Random(seed), BEGIN
    while facts or now < END + MINUTE:
        now += random.randint(60, 1500) * SECOND
        while facts and facts[0].arrives <= now:
            facts.pop(0).apply()
        if random.random() < 0.3 and (event := LoggedEvent.objects.filter(kind="PodBound").order_by("?").first()):
            LoggedEvent.objects.filter(pk=event.pk).update(kind="PodBound")
            tell(Job.objects.get(uid=event.subject[4:]), events.parse(event.kind, event.payload), event.at)  # doubled
        services.roll_up(now=now, settle=random.choice([0, 5]) * MINUTE, most_seconds=60)
    services.roll_up(now=now, settle=timedelta(), most_seconds=60)
    assert not StaleHour.objects.exists()


def totals(level: int, until: datetime, held: bool = False) -> Counter[Any]:
    """GPU microseconds by hour and class; and by node, if they are not of holders."""
    found: Counter[Any] = Counter()
    rows = (HolderGpuTime if held else NodeGpuTime).objects.filter(level=level, at__lt=until)
    for row in rows:
        for name in [one.value for one in HELD] if held else CLASSES:
            found[(floor(row.at, HOUR), name) if held else (floor(row.at, HOUR), row.node, name)] += getattr(row, name)
    return +found


def raw(until: datetime) -> Counter[Any]:
    """The same from the raw rows, second by second, with a rule written anew."""
    found: Counter[Any] = Counter()
    pods = list(Pod.objects.filter(bound_at__isnull=False).select_related("job").order_by("pk"))
    stops = {
        (event.subject, event.payload["index"], event.payload["attempt"])
        for event in LoggedEvent.objects.filter(kind="PodStopRequested")
    }
    states = list(LoggedEvent.objects.filter(kind="NodeChanged", payload__has_key="allocatable").order_by("pk"))
    busy = {
        (pod, floor(at, MINUTE)): gpu >= 50
        for pod, at, gpu in Sample.objects.values_list("pod_id", "at", "gpu_thousandths")
    }
    for name in GPUS:
        history = [(event.at, event.payload) for event in states if event.payload["node"] == name]
        held = [_Raw(pod, pods, stops) for pod in pods if pod.node == name]
        for second in range(int((until - BEGIN) / SECOND)):
            at = BEGIN + second * SECOND
            state = next((payload for since, payload in reversed(history) if since <= at), {})
            left = int(state.get("allocatable", {}).get("nvidia.com/gpu", 0)) if state.get("present") else 0
            whole = "free" if state.get("schedulable") else "drained"
            present = sorted((CLASSES.index(one.name_at(at, busy)), one.pod.bound_at, n) for n, one in enumerate(held)
                             if one.pod.bound_at <= at < one.end)  # fmt: skip
            for place, _bound, n in present:
                part = min(left, held[n].gpus)
                found[floor(at, HOUR), name, CLASSES[place]] += part * 1_000_000
                left -= part
            found[floor(at, HOUR), name, whole if state.get("ready") else "down"] += left * 1_000_000
    return +found


class _Raw:
    """What became of the time of a pod."""

    def __init__(self, pod: Pod, every: list[Pod], stops: set[tuple[str, int, int]]) -> None:
        self.pod, job = pod, pod.job
        self.gpus = int(job.spec["tasks"][0]["resources"]["nvidia.com/gpu"])
        self.end = pod.finished_at or END + HOUR
        starts = [one.started_at for one in every if one.job_id == job.pk and one.version == pod.version]
        gang = None if None in starts or len(starts) < job.replicas else max(starts)
        self.ready = gang
        self.lost = ""
        if (pod.phase == "failed") and (f"job:{job.uid}", pod.index, pod.attempt) not in stops:
            self.lost = "failed"
        if pod.version < job.version:
            mates = [one for one in every if one.job_id == job.pk and one.version == pod.version]
            self.lost = "preempted" if any(one.evicted for one in mates) else "retried"
        if pod.evicted:
            self.lost = "preempted"

    def name_at(self, at: datetime, busy: dict[tuple[int, datetime], bool]) -> str:
        if self.ready is None or at < self.ready:
            return "gang"
        use = busy.get((self.pod.pk, floor(at, MINUTE)))
        return self.lost or ("unmeasured" if use is None else "useful" if use else "idle")


@pytest.mark.parametrize("seed", [4])
def test_measures_agree_with_raw_rows_and_with_a_rebuild(people: Any, seed: int) -> None:
    """Late, doubled and reordered facts, gangs, restarts, evictions, nodes that go down: difference 0."""
    PriceList.objects.create(
        name="P", currency="EUR", begin_at=BEGIN - DAY, spec=PRICES, factors={str(people.queue.pk): "1.5"},
        created_at=BEGIN,
    )  # fmt: skip
    run(people, seed)
    want = raw(END)
    assert {name for _hour, _node, name in want} == set(CLASSES)
    assert totals(60, END) == want
    assert totals(1, END) == want
    by_class: Counter[Any] = Counter()
    for (hour, _node, name), amount in want.items():
        by_class[hour, name] += amount if name in [one.value for one in HELD] else 0
    assert totals(60, END, held=True) == +by_class
    costs = raw_costs(+by_class)
    assert costs_of(60) == costs
    assert costs_of(60, PartCost.objects.filter(by="person")) == costs
    assert {key[1:] for key in costs} >= {("gpu", "idle"), ("gpu", "failed"), ("cpu", "gang"), ("memory", "unmeasured")}
    day: Counter[Any] = Counter()
    for (hour, *key), amount in costs_of(60, until=END + DAY).items():
        day[floor(hour, DAY), *key] += amount
    assert costs_of(1440, until=END + DAY) == day
    assert sums_of(1440) == sums_of(60)
    assert sums_of(60, ClusterGpuTime) == sums_of(60)
    assert parts_agree()
    before = tables()
    services.rebuild(now=END + HOUR)
    assert tables() == before
    for hour in (BEGIN, BEGIN + HOUR):  # so old that its minutes are not kept
        sums.write(people.cluster.pk, hour, hour + HOUR, now=END + 3 * DAY)
    assert totals(60, END) == want
    assert parts_agree()
    assert not NodeGpuTime.objects.filter(level=1, at__lt=END).exists()


PRICES = {
    "name": "P", "currency": "EUR", "cpu": "0.031", "memory": "0.0077", "gpu": "9", "models": {"A100": "2.345678"},
    "windows": [{"days": "all", "begin": BEGIN.hour, "end": BEGIN.hour + 1, "factor": "0.7"}],
}  # fmt: skip
RATES = {  # the price, multiplied by the factor of the queue; the first hour has another one
    BEGIN: {"cpu": 32_550, "memory": 8_085, "gpu": 2_462_962},
    BEGIN + HOUR: {"cpu": 46_500, "memory": 11_550, "gpu": 3_518_517},
}


def raw_costs(gpus: Counter[Any]) -> Counter[Any]:
    """Costs by hour, resource and class from GPU time, and from the raw rows of pods second by second."""
    held = Counter({(hour, "gpu", name): Fraction(amount, 1_000_000) for (hour, name), amount in gpus.items()})
    pods = list(Pod.objects.filter(bound_at__isnull=False).select_related("job").order_by("pk"))
    stops = {
        (event.subject, event.payload["index"], event.payload["attempt"])
        for event in LoggedEvent.objects.filter(kind="PodStopRequested")
    }
    for one in (_Raw(pod, pods, stops) for pod in pods):
        for second in range(int((min(one.end, END) - one.pod.bound_at) / SECOND)):
            at = one.pod.bound_at + second * SECOND
            name = one.name_at(at, {})
            held[floor(at, HOUR), "cpu", name] += 1
            held[floor(at, HOUR), "memory", name] += Fraction(3, 2)
    return +Counter(
        {
            (hour, resource, name): int(seconds * RATES[hour][resource] / 3600 + Fraction(1, 2))
            for (hour, resource, name), seconds in held.items()
        }
    )


def costs_of(level: int, rows: Any = None, until: datetime = END) -> Counter[Any]:
    """Stored costs by time, resource and class."""
    found: Counter[Any] = Counter()
    for row in (HolderCost.objects.all() if rows is None else rows).filter(level=level, at__lt=until):
        for one in HELD:
            found[row.at, row.resource, one.value] += getattr(row, one.value)
    return +found


def parts_agree() -> bool:
    """The sums of each part of hours and days are those of its holders."""
    columns = [one.value for one in HELD]
    totals = {f"of_{name}": Sum(name) for name in columns}
    for by, column in PARTS.items():
        parts = PartGpuTime.objects.filter(by=by).values_list("level", "at", "key", "model", *columns)
        rows = HolderGpuTime.objects.filter(level__gt=1).order_by().values("level", "at", column, "model")
        holders = rows.annotate(**totals).values_list("level", "at", column, "model", *totals)
        if {(*row[:2], str(row[2]), *row[3:]) for row in holders} != set(parts):
            return False
    return True


def sums_of(level: int, table: Any = NodeGpuTime) -> dict[str, int]:
    return table.objects.filter(level=level).aggregate(**{name: Sum(name) for name in [*CLASSES, "beyond"]})


def tables() -> list[Any]:
    """All derived rows; a span by its facts, since its number differs."""
    derived = (NodeGpuTime, HolderGpuTime, ClusterGpuTime, PartGpuTime, GpuHolding, HolderCost, PartCost)
    rows = [list(table.objects.order_by("pk").values()) for table in derived]
    spans = GpuCapacity.objects.values_list("node", "gpus", "state", "begin_at", "end_at")
    return [*rows, sorted(spans, key=str)]


@pytest.fixture
def measured(people: Any) -> Any:
    """A real node with 4 GPUs for 40 minutes. One pod held two for 30, one that waits for its gang held one for 20."""
    Cluster.objects.filter(pk=people.cluster.pk).update(kind="local")
    begin = floor(clock.now(), MINUTE) - 40 * MINUTE
    node(people, "n2", begin)
    train, gang = training(people, "train", 2, 1), training(people, "gang", 1, 2)
    one, two = attempt(train, 0), attempt(gang, 0)
    bound = begin + 10 * MINUTE
    places = {"task": "main", "index": 0, "attempt": 1, "node": "n2"}
    fields = {"phase": "running", "node": "n2", "bound_at": bound, "started_at": bound}
    change(one, events.PodBound(**places), bound, **fields)
    late = begin + 20 * MINUTE
    change(two, events.PodBound(**places), late, **fields | {"bound_at": late, "started_at": late})
    Sample.objects.bulk_create(
        Sample(pod=one, at=begin + n * MINUTE, cpu_ms=n, memory_bytes=1, span_seconds=10, gpu_thousandths=900)
        for n in range(10, 25)
    )
    Sample.objects.bulk_create(
        Sample(pod=one, at=begin + n * MINUTE, cpu_ms=n, memory_bytes=1, span_seconds=10, gpu_thousandths=0)
        for n in range(25, 40)
    )
    services.roll_up(now=begin, most_seconds=60)
    services.roll_up(now=begin + 41 * MINUTE, settle=timedelta(), most_seconds=60)
    people.begin, people.jobs = begin, (train, gang)
    return people


def gpu_time(as_: Any, user: Any, **query: str) -> Any:
    response = as_(user).get(reverse("api:v1:gpu_time"), {"period": "hour", **query})
    return response.json() if response.status_code == 200 else response.status_code


def minutes(amounts: dict[str, float]) -> dict[str, int]:
    return {name: round(seconds / 60) for name, seconds in amounts.items() if seconds}


def test_capacity_is_for_those_who_see_everything(measured: Any, as_: Any) -> None:
    """Others see what their tenants held; outside of them nothing exists."""
    want = {"useful": 30, "idle": 30, "gang": 20}
    found = gpu_time(as_, measured.ada)
    assert found["is_capacity"]
    assert minutes(found["gpu_seconds"]) == {**want, "free": 4 * 40 - 80}
    found = gpu_time(as_, measured.bob)
    assert not found["is_capacity"]
    assert minutes(found["gpu_seconds"]) == want
    assert [(part["name"], part["key"]) for part in found["parts"]] == [("Lab", "lab")]
    assert minutes(gpu_time(as_, measured.charlie)["gpu_seconds"]) == {}
    assert gpu_time(as_, measured.charlie, tenant="lab") == 404
    assert gpu_time(as_, measured.ada, cluster="none") == 404
    assert gpu_time(as_, measured.ada, period="year") == 400


def test_filters_and_parts_agree_with_the_whole(measured: Any, as_: Any) -> None:
    whole = gpu_time(as_, measured.ada)["gpu_seconds"]
    for by, name in {"cluster": "sim", "queue": "default", "tenant": "Lab", "person": "alice", "model": "A100"}.items():
        (part,) = gpu_time(as_, measured.ada, by=by)["parts"]
        assert part["name"] == name
        assert part["gpu_seconds"]["gang"] == whole["gang"]
    assert gpu_time(as_, measured.ada, model="A100")["gpu_seconds"] == whole
    assert minutes(gpu_time(as_, measured.ada, model="H100")["gpu_seconds"]) == {}
    assert gpu_time(as_, measured.ada, queue="default")["gpu_seconds"]["idle"] == whole["idle"]
    for period in ("hour", "day", "week", "month", "quarter"):
        for by in ("tenant", "person", "kind", "model"):
            found = gpu_time(as_, measured.ada, by=by, period=period)
            (part,) = found["parts"]
            assert minutes(part["gpu_seconds"]).items() <= minutes(found["gpu_seconds"]).items()
    later = (measured.begin + 3 * HOUR).isoformat()
    assert gpu_time(as_, measured.ada, until=later)["gpu_seconds"] == whole  # not later than now


def test_simulated_clusters_count_only_if_chosen(measured: Any, as_: Any) -> None:
    Cluster.objects.filter(pk=measured.cluster.pk).update(kind="simulated")
    assert minutes(gpu_time(as_, measured.ada)["gpu_seconds"]) == {}
    found = gpu_time(as_, measured.ada, cluster="sim")
    assert found["is_simulated"]
    assert minutes(found["gpu_seconds"])["gang"] == 20


def page(as_: Any, user: Any, name: str, **query: str) -> str:
    response = as_(user).get(reverse(f"operations:{name}"), {"period": "hour", **query})
    assert response.status_code == 200
    return response.content.decode()


def test_page_leads_from_a_class_to_its_pods(measured: Any, as_: Any) -> None:
    text = page(as_, measured.ada, "gpu_time")
    assert "Waiting for the gang" in text
    assert '"stackgroup":"gpus"' in text
    link = re.search(r'href="([^"]+of=gang)"', text)
    assert link is not None
    pods = as_(measured.ada).get(html.unescape(link[1])).content.decode()
    assert reverse("jobs:detail", args=[measured.jobs[1].uid]) in pods
    assert reverse("jobs:detail", args=[measured.jobs[0].uid]) not in pods
    assert "No pods" in page(as_, measured.charlie, "holdings", of="gang")
    assert as_(measured.charlie).get(reverse("operations:holdings"), {"tenant": "lab"}).status_code == 404


def test_file_has_the_figure_in_gpu_hours(measured: Any, as_: Any) -> None:
    rows = list(csv.DictReader(page(as_, measured.ada, "gpu_time_file").splitlines()))
    assert len(rows) == 60
    assert round(sum(float(row["gang"]) for row in rows) * 60, 3) == 20
    assert round(sum(float(row["free"]) for row in rows) * 60, 3) == 80


def test_unused_gpus_are_listed_with_their_owner(measured: Any, as_: Any) -> None:
    """The busy pod since its last use, the other one since its bind, as long as nobody can tell that it runs."""
    text = page(as_, measured.bob, "waste")
    assert "Idle in a job" in text
    assert "Waiting for the gang" in text
    assert "alice" in text
    assert "alice" not in page(as_, measured.charlie, "waste")


@pytest.mark.parametrize("until", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59-14:00", "2026-99-99", "\0"])
def test_strange_times_are_bounded(people: Any, as_: Any, until: str) -> None:
    for name in ("gpu_time", "gpu_time_file", "holdings", "waste"):
        page(as_, people.bob, name, until=until, model="\0")
    assert gpu_time(as_, people.bob, until="0001-01-01T00:00:00Z")["measured_until"] is None


def test_hours_whose_use_is_not_stored_stay_as_they_are(people: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Computed again, their useful time would be unmeasured. A rebuild computes those without sums."""
    now, cluster = floor(clock.now(), HOUR), people.cluster.pk
    MeasuredCluster.objects.create(cluster_id=cluster, until=now)
    stale.mark({cluster: {(now - 60 * DAY, None), (now + MINUTE, None)}}, now=now)
    hours = list(StaleHour.objects.order_by("at").values_list("at", flat=True))
    assert (hours[0], hours[-1], len(hours)) == (now - MEASURED, now - HOUR, MEASURED // HOUR)
    old = now - 40 * DAY
    node(people, "n2", old - HOUR)
    NodeGpuTime.objects.create(level=60, cluster_id=cluster, at=old, node="n2", model="A100", useful=7)
    monkeypatch.setattr(services, "_settle_day", lambda *_: 0)
    services.rebuild(now=now)
    hours = list(StaleHour.objects.order_by("at").values_list("at", flat=True)[:2])
    assert hours == [old - HOUR, old + HOUR]


@pytest.mark.parametrize(("age", "is_due"), [(timedelta(minutes=30), True), (20 * DAY, False), (29.5 * DAY, True)])
def test_an_hour_is_computed_before_its_samples_are_deleted(people: Any, age: timedelta, *, is_due: bool) -> None:
    """Old hours wait longer for further changes, but not until their useful time would become unmeasured."""
    now = clock.now()
    StaleHour.objects.create(cluster_id=people.cluster.pk, at=floor(now - age, HOUR), since=now - services.SETTLE)
    services.roll_up(now=now, most_seconds=60)
    assert StaleHour.objects.exists() != is_due


def test_the_past_of_a_new_cluster_is_added_up_at_once(people: Any) -> None:
    now = floor(clock.now(), HOUR) - HOUR // 2  # in the first minutes of an hour the one before is not settled
    node(people, "n2", now - 30 * HOUR)
    services.roll_up(now=now, most_seconds=60)
    assert (NodeGpuTime.objects.filter(level=60).count(), StaleHour.objects.count()) == (31, 0)


def test_long_times_are_read_in_coarse_sums() -> None:
    """Whole hours and days, and finer sums only at the ends. What goes on ends in sums that are not over."""
    noon = floor(clock.now(), DAY) + 12 * HOUR
    begin, end = noon - 7 * DAY, noon
    days = (floor(begin, DAY) + DAY, floor(end, DAY))
    past = [(HOUR, begin, days[0]), (DAY, *days), (HOUR, days[1], end)]
    assert stretches(begin, end, HOUR, now=noon + DAY) == past
    assert stretches(begin, end, HOUR, now=noon) == [past[0], (DAY, days[0], days[1] + DAY)]
    minute = noon + 7 * MINUTE
    assert stretches(minute - HOUR, minute, MINUTE, now=minute) == [
        (MINUTE, minute - HOUR, noon),
        (HOUR, noon, noon + HOUR),
    ]
    assert stretches(minute - HOUR, minute, MINUTE, now=minute + SECOND) == [(MINUTE, minute - HOUR, minute)]
    assert stretches(noon - DAY, noon, DAY, now=noon) == [(DAY, noon - DAY, noon)]


def test_page_without_gpus_says_what_to_do(people: Any, as_: Any) -> None:
    text = page(as_, people.bob, "gpu_time", period="strange", until="2026-99-99")
    assert "No GPU time is measured yet" in text


def test_idle_console_has_no_work(people: Any) -> None:
    assert tasks.roll_up_measures.name in EACH_MINUTE
    services.roll_up(now=clock.now())
    assert due_work.tasks_with_work([tasks.roll_up_measures.name], now=clock.now()) == []
    Numbering.objects.update(last=F("last") + 3000)  # else the whole log would be searched for nodes each minute
    assert due_work.tasks_with_work([tasks.roll_up_measures.name], now=clock.now()) == [tasks.roll_up_measures.name]
    Numbering.objects.update(last=F("last") - 3000)
    node(people, "n1", clock.now())
    assert due_work.tasks_with_work([tasks.roll_up_measures.name], now=clock.now()) == [tasks.roll_up_measures.name]
