"""Resource usage of pods: samples that are thinned with age and deleted, shown to readers of the job."""

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.accounts.models import User
from hekla.apps.clusters import leases
from hekla.apps.clusters.models import Node
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.usage import selectors, services
from hekla.apps.usage.levels import LEVELS
from hekla.apps.usage.models import Sample
from hekla.apps.usage.services import Reading
from hekla.domain.resources import Resources
from hekla.lib import clock
from hekla.pages.usage import plots

__all__ = ["db", "people", "shared_people"]

As = Callable[[User], Client]
NOW = clock.now().replace(minute=0, second=0, microsecond=0)
MIB = 2**20


def a_pod(job: Job, index: int = 0, *, task: str = "main", attempt: int = 1, began: datetime = NOW) -> Pod:
    return Pod.objects.create(
        job=job, task=task, index=index, attempt=attempt, version=1, slot=index, address="", phase="running",
        created_at=began, started_at=began,
    )  # fmt: skip


def record(people: People, *readings: Reading) -> None:
    epoch = leases.take(people.cluster, "me", now=NOW)
    assert epoch
    services.record(people.cluster.pk, epoch, readings)


def steady(pod: Pod, count: int, *, cores: float = 0.5, memory: int = 100 * MIB, every: int = 10) -> list[Reading]:
    """`count` samples until now of a pod with constant CPU use."""
    begin = NOW - timedelta(seconds=every * count)
    return [
        Reading(pod.pk, begin + timedelta(seconds=every * n), cores * every * n, memory + n, gpus_busy=n % 2)
        for n in range(count)
    ]


def test_all_readings_are_one_statement(people: People, django_assert_num_queries) -> None:
    pods = [a_pod(people.submit(), index) for index in range(1)]
    job = pods[0].job
    pods += [a_pod(job, index) for index in range(1, 40)]
    epoch = leases.take(people.cluster, "me", now=NOW)
    with django_assert_num_queries(4):  # begin, the lease, the samples, commit
        services.record(people.cluster.pk, epoch, [Reading(pod.pk, NOW, 1.0, MIB) for pod in pods])
    assert Sample.objects.count() == 40


def test_stale_lease_records_nothing(people: People) -> None:
    pod = a_pod(people.submit())
    with pytest.raises(leases.LeaseLost):
        services.record(people.cluster.pk, 99, [Reading(pod.pk, NOW, 1.0, MIB)])
    assert not Sample.objects.exists()


def test_repeated_reading_is_stored_once(people: People) -> None:
    pod = a_pod(people.submit())
    for _ in range(2):
        record(people, Reading(pod.pk, NOW, 1.0, MIB))
    assert Sample.objects.count() == 1


def counts_by_span() -> dict[int, int]:
    rows = Sample.objects.values_list("span_seconds", flat=True)
    return {span: list(rows).count(span) for span in set(rows)}


def test_thinning_keeps_cpu_time_and_peaks(people: People) -> None:
    pod = a_pod(people.submit())
    record(people, *steady(pod, 6 * 180))  # three hours
    services.thin(now=NOW)
    fine, coarse = counts_by_span()[10], counts_by_span()[60]
    assert (fine, coarse) == (360, 120)
    oldest = Sample.objects.order_by("at").first()
    assert oldest.at == NOW - timedelta(hours=3) + timedelta(seconds=50)
    assert (oldest.cpu_ms, oldest.memory_bytes, oldest.gpu_thousandths) == (25_000, 100 * MIB + 5, 500)
    services.thin(now=NOW)
    assert counts_by_span() == {10: fine, 60: coarse}
    services.thin(now=NOW + timedelta(days=2))
    assert counts_by_span() == {600: 18}
    services.thin(now=NOW + timedelta(days=31))
    assert not Sample.objects.exists()


def test_number_of_samples_is_bounded(people: People) -> None:
    """However often samples are thinned, and also after a gap."""
    pod = a_pod(people.submit())
    begin = NOW - timedelta(hours=30)
    for hour in range(0, 30, 3):
        at = begin + timedelta(hours=hour)
        record(people, *(Reading(pod.pk, at + timedelta(seconds=10 * n), float(n), MIB) for n in range(6 * 180)))
        services.thin(now=at + timedelta(hours=3))
    services.thin(now=NOW)
    limits = {level.span_seconds: int(level.retention.total_seconds() // level.span_seconds) for level in LEVELS}
    assert all(count <= limits[span] + 60 for span, count in counts_by_span().items()), counts_by_span()
    assert sum(counts_by_span().values()) < 6 * 60 * 2 + 24 * 60


def test_points_of_pods_and_their_sum(people: People) -> None:
    job = people.submit()
    pods = [a_pod(job, index, began=NOW - timedelta(minutes=10)) for index in range(2)]
    for pod in pods:
        record(people, *steady(pod, 60))
    points_by_pod = selectors.course(pods, by_task=False, now=NOW)
    assert {point.line for point in points_by_pod} == {"main-0", "main-1"}
    assert {point.cores for point in points_by_pod if point.cores is not None} == {0.5}
    points_by_task = selectors.course(pods, by_task=True, now=NOW)
    assert {point.line for point in points_by_task} == {"main"}
    assert {point.cores for point in points_by_task[1:]} == {1.0}
    assert points_by_task[-1].memory_bytes == pytest.approx(200 * MIB, abs=200)


def test_attempts_of_a_replica_are_one_line(people: People) -> None:
    job = people.submit()
    begin = NOW - timedelta(minutes=5)
    first, second = a_pod(job, began=begin), a_pod(job, attempt=2, began=begin + timedelta(minutes=2))
    record(people, *(Reading(first.pk, begin + timedelta(seconds=10 * n), 100.0 * n, MIB) for n in range(3)))
    record(people, *(Reading(second.pk, begin + timedelta(seconds=120 + 10 * n), 10.0 * n, MIB) for n in range(3)))
    points = selectors.course([first, second], by_task=False, now=NOW)
    assert {point.line for point in points} == {"main-0"}
    assert [point.cores for point in points] == [None, 10.0, 10.0, None, 1.0, 1.0]


def test_long_history_has_bounded_points(people: People) -> None:
    pod = a_pod(people.submit(), began=NOW - timedelta(hours=3))
    record(people, *steady(pod, 6 * 180))
    points = selectors.course([pod], by_task=False, now=NOW)
    assert len(points) <= selectors.POINTS + 1
    assert {round(point.cores, 6) for point in points[1:]} == {0.5}


def drawn(picture: plots.UsagePlot) -> Any:
    return json.loads(picture.json)["figure"]


def test_plots_have_units_request_lines_and_gpus_if_any(people: People) -> None:
    at = [NOW + timedelta(seconds=10 * n) for n in range(2)]
    points = [selectors.UsagePoint("main-0", when, 0.5, 512 * MIB, None, None) for when in at]
    requests = {"main-0": Resources.parse({"cpu": "2", "memory": "1Gi"})}
    cpu, memory = plots.pictures(points, requests)
    assert (cpu.title, memory.title) == ("CPU (cores)", "Memory (MiB)")
    assert [line["name"] for line in drawn(memory)["data"]] == ["main-0", "requested"]
    assert drawn(memory)["data"][1]["y"] == [1024, 1024]
    assert drawn(memory)["layout"]["showlegend"]
    assert drawn(cpu)["data"][0]["x"][0] == f"{NOW:%Y-%m-%dT%H:%M:%SZ}"
    with_gpu = [selectors.UsagePoint("main-0", when, 0.5, MIB, 0.9, 2**31) for when in at]
    assert [picture.title for picture in plots.pictures(with_gpu, requests)][2:] == ["Busy GPUs", "GPU memory (GiB)"]
    part = {"main-0": Resources.parse({"volcano.sh/gpu-memory": "1536"})}
    assert drawn(plots.pictures(with_gpu, part)[3])["data"][1]["y"] == [1.5, 1.5]
    assert plots.pictures([], requests) == []
    short = [
        selectors.UsagePoint("main-0", when, cores, MIB, None, None)
        for when, cores in zip(at, (None, 1.0), strict=True)
    ]
    assert [drawn(picture)["data"][0]["mode"] for picture in plots.pictures(short, requests)] == ["markers", "lines"]
    assert plots.pictures(points[:1], requests) == []
    assert [row.most_memory for row in plots.rows(points[:1], requests)] == ["512 MiB"]


def test_usage_needs_access_to_the_job(people: People, as_: As) -> None:
    job = people.submit()
    pod = a_pod(job, began=NOW - timedelta(minutes=10))
    record(people, *steady(pod, 30))
    for address in (reverse("usage:job", args=[job.uid]), reverse("usage:pod", args=[pod.pk])):
        page = as_(people.bob).get(address).content.decode()
        assert 'data-plot="use-plot-2"' in page
        assert "0.50" in page
        assert f'data-refresh="{address}"' in page
        assert as_(people.charlie).get(address).status_code == 404


def test_page_says_why_the_replicas_change_or_stay(people: People, as_: As) -> None:
    rule = {"max_replicas": 4, "gpu_utilization": 70}
    task = {"name": "main", "replicas": 2, "min_available": 1, "command": ["true"], "autoscaling": rule}
    Node.objects.update(allocatable={"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "4"})
    job = people.submit(tasks=[{**task, "resources": {"nvidia.com/gpu": "1"}}])
    Job.objects.update(phase="running")
    pods, at = [a_pod(job, index, began=NOW - timedelta(hours=1)) for index in range(2)], clock.now()
    page = as_(people.bob).get(reverse("usage:job", args=[job.uid])).content.decode()
    assert "2 replicas, between 1 and 4." in page
    assert "No utilization was measured in the last minute, so the number of replicas stays." in page
    record(people, *(Reading(pod.pk, at, 1.0, MIB, gpus_busy=0.91) for pod in pods))
    page = as_(people.bob).get(reverse("usage:job", args=[job.uid])).content.decode()
    assert "Its GPUs are 91% busy. The target is 70%. It grows to 3 replicas." in page


def test_finished_job_is_not_refreshed(people: People, as_: As) -> None:
    job = people.submit()
    a_pod(job)
    Pod.objects.update(phase="succeeded", finished_at=NOW)
    Job.objects.update(phase="completed")
    page = as_(people.alice).get(reverse("usage:job", args=[job.uid])).content.decode()
    assert "data-refresh" not in page
    assert "Simulated pods use nothing" in page


def test_large_job_is_shown_by_task(people: People, as_: As) -> None:
    job = people.submit(tasks=[{"name": "main", "replicas": 9, "command": ["true"]}])
    for index in range(9):
        record(people, *steady(a_pod(job, index, began=NOW - timedelta(minutes=5)), 20))
    page = as_(people.alice).get(reverse("usage:job", args=[job.uid])).content.decode()
    assert '"name":"main"' in page
    assert '"name":"main-0"' not in page


def test_usage_is_deleted_with_the_job(people: People) -> None:
    job, other = people.submit(), people.submit("other")
    record(people, *steady(a_pod(job), 5), *steady(a_pod(other), 3))
    Job.objects.filter(pk=job.pk).delete()
    assert Sample.objects.count() == 3
