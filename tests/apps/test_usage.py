"""What pods used: kept finely, then coarsely, then not at all; and shown to who may see the job."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People

from hekla.apps.accounts.models import User
from hekla.apps.clusters import leases
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.usage import selectors, services
from hekla.apps.usage.levels import LEVELS
from hekla.apps.usage.models import Sample
from hekla.apps.usage.services import Reading
from hekla.domain.resources import Resources
from hekla.lib import clock
from hekla.pages.usage import plots

As = Callable[[User], Client]
NOW = clock.now().replace(minute=0, second=0, microsecond=0)
MIB = 2**20


def a_pod(job: Job, index: int = 0, *, task: str = "main", attempt: int = 1, began: datetime = NOW) -> Pod:
    return Pod.objects.create(
        job=job, task=task, index=index, attempt=attempt, version=1, slot=index, address="", phase="running",
        created_at=began, started_at=began,
    )  # fmt: skip


def measured(people: People, *readings: Reading) -> None:
    epoch = leases.take(people.cluster, "me", now=NOW)
    assert epoch
    services.record(people.cluster.pk, epoch, readings)


def steady(pod: Pod, count: int, *, cores: float = 0.5, memory: int = 100 * MIB, every: int = 10) -> list[Reading]:
    """So many samples until now, of a pod that takes so many cores."""
    begin = NOW - timedelta(seconds=every * count)
    return [
        Reading(pod.pk, begin + timedelta(seconds=every * n), cores * every * n, memory + n, gpus_busy=n % 2)
        for n in range(count)
    ]


def test_all_pods_of_a_look_are_one_statement(people: People, django_assert_num_queries) -> None:
    pods = [a_pod(people.submit(), index) for index in range(1)]
    job = pods[0].job
    pods += [a_pod(job, index) for index in range(1, 40)]
    epoch = leases.take(people.cluster, "me", now=NOW)
    with django_assert_num_queries(4):  # begin, the lease, the samples, commit
        services.record(people.cluster.pk, epoch, [Reading(pod.pk, NOW, 1.0, MIB) for pod in pods])
    assert Sample.objects.count() == 40


def test_who_lost_the_lease_keeps_nothing(people: People) -> None:
    pod = a_pod(people.submit())
    with pytest.raises(leases.LeaseLost):
        services.record(people.cluster.pk, 99, [Reading(pod.pk, NOW, 1.0, MIB)])
    assert not Sample.objects.exists()


def test_the_same_look_twice_is_kept_once(people: People) -> None:
    pod = a_pod(people.submit())
    for _ in range(2):
        measured(people, Reading(pod.pk, NOW, 1.0, MIB))
    assert Sample.objects.count() == 1


def spans() -> dict[int, int]:
    rows = Sample.objects.values_list("span_seconds", flat=True)
    return {span: list(rows).count(span) for span in set(rows)}


def test_samples_grow_coarser_with_age_and_lose_neither_cpu_time_nor_peaks(people: People) -> None:
    pod = a_pod(people.submit())
    measured(people, *steady(pod, 6 * 180))  # three hours
    services.thin(now=NOW)
    fine, coarse = spans()[10], spans()[60]
    assert (fine, coarse) == (360, 120)
    oldest = Sample.objects.order_by("at").first()
    assert oldest.at == NOW - timedelta(hours=3) + timedelta(seconds=50)
    assert (oldest.cpu_ms, oldest.memory_bytes, oldest.gpu_thousandths) == (25_000, 100 * MIB + 5, 500)
    services.thin(now=NOW)
    assert spans() == {10: fine, 60: coarse}
    services.thin(now=NOW + timedelta(days=2))
    assert spans() == {600: 18}
    services.thin(now=NOW + timedelta(days=31))
    assert not Sample.objects.exists()


def test_a_pod_has_no_more_rows_than_the_levels_allow(people: People) -> None:
    """However often it is thinned in between, and after a break."""
    pod = a_pod(people.submit())
    begin = NOW - timedelta(hours=30)
    for hour in range(0, 30, 3):
        at = begin + timedelta(hours=hour)
        measured(people, *(Reading(pod.pk, at + timedelta(seconds=10 * n), float(n), MIB) for n in range(6 * 180)))
        services.thin(now=at + timedelta(hours=3))
    services.thin(now=NOW)
    most = {level.span_seconds: int(level.retention.total_seconds() // level.span_seconds) for level in LEVELS}
    assert all(count <= most[span] + 60 for span, count in spans().items()), spans()
    assert sum(spans().values()) < 6 * 60 * 2 + 24 * 60


def test_a_course_tells_cores_and_bytes_of_each_pod_and_their_sum(people: People) -> None:
    job = people.submit()
    pods = [a_pod(job, index, began=NOW - timedelta(minutes=10)) for index in range(2)]
    for pod in pods:
        measured(people, *steady(pod, 60))
    each = selectors.course(pods, by_task=False, now=NOW)
    assert {point.line for point in each} == {"main-0", "main-1"}
    assert {point.cores for point in each if point.cores is not None} == {0.5}
    together = selectors.course(pods, by_task=True, now=NOW)
    assert {point.line for point in together} == {"main"}
    assert {point.cores for point in together[1:]} == {1.0}
    assert together[-1].memory_bytes == pytest.approx(200 * MIB, abs=200)


def test_attempts_of_a_replica_are_one_line_and_do_not_count_against_each_other(people: People) -> None:
    job = people.submit()
    begin = NOW - timedelta(minutes=5)
    first, second = a_pod(job, began=begin), a_pod(job, attempt=2, began=begin + timedelta(minutes=2))
    measured(people, *(Reading(first.pk, begin + timedelta(seconds=10 * n), 100.0 * n, MIB) for n in range(3)))
    measured(people, *(Reading(second.pk, begin + timedelta(seconds=120 + 10 * n), 10.0 * n, MIB) for n in range(3)))
    points = selectors.course([first, second], by_task=False, now=NOW)
    assert {point.line for point in points} == {"main-0"}
    assert [point.cores for point in points] == [None, 10.0, 10.0, None, 1.0, 1.0]


def test_a_long_course_is_thinned_to_what_a_picture_shows(people: People) -> None:
    pod = a_pod(people.submit(), began=NOW - timedelta(hours=3))
    measured(people, *steady(pod, 6 * 180))
    points = selectors.course([pod], by_task=False, now=NOW)
    assert len(points) <= selectors.POINTS + 1
    assert {round(point.cores, 6) for point in points[1:]} == {0.5}


def test_pictures_have_a_unit_a_line_for_what_was_asked_and_gpus_only_where_there_are_some(people: People) -> None:
    at = [NOW + timedelta(seconds=10 * n) for n in range(2)]
    points = [selectors.UsagePoint("main-0", when, 0.5, 512 * MIB, None, None) for when in at]
    asked = {"main-0": Resources.parse({"cpu": "2", "memory": "1Gi"})}
    cpu, memory = plots.pictures(points, asked)
    assert (cpu.title, memory.title) == ("CPU (cores)", "Memory (MiB)")
    assert [line.name for line in memory.figure.data] == ["main-0", "requested"]
    assert memory.figure.data[1].y == (1024, 1024)
    assert memory.figure.layout.showlegend
    assert cpu.figure.data[0].x[0] == f"{NOW:%Y-%m-%dT%H:%M:%SZ}"
    with_gpu = [selectors.UsagePoint("main-0", when, 0.5, MIB, 0.9, 2**31) for when in at]
    assert [picture.title for picture in plots.pictures(with_gpu, asked)][2:] == ["Busy GPUs", "GPU memory (GiB)"]
    assert plots.pictures([], asked) == []
    assert plots.pictures(points[:1], asked) == []
    assert [row.most_memory for row in plots.rows(points[:1], asked)] == ["512 MiB"]


def test_use_is_shown_to_who_may_see_the_job(people: People, as_: As) -> None:
    job = people.submit()
    pod = a_pod(job, began=NOW - timedelta(minutes=10))
    measured(people, *steady(pod, 30))
    for address in (reverse("usage:job", args=[job.uid]), reverse("usage:pod", args=[pod.pk])):
        page = as_(people.bob).get(address).content.decode()
        assert 'data-plot="use-plot-2"' in page
        assert "0.50" in page
        assert f'data-refresh="{address}"' in page
        assert as_(people.charlie).get(address).status_code == 404


def test_a_part_that_will_not_change_any_more_does_not_ask_again(people: People, as_: As) -> None:
    job = people.submit()
    a_pod(job)
    Pod.objects.update(phase="succeeded", finished_at=NOW)
    Job.objects.update(phase="completed")
    page = as_(people.alice).get(reverse("usage:job", args=[job.uid])).content.decode()
    assert "data-refresh" not in page
    assert "simulated" in page


def test_a_large_job_is_shown_by_task(people: People, as_: As) -> None:
    job = people.submit(tasks=[{"name": "main", "replicas": 9, "command": ["true"]}])
    for index in range(9):
        measured(people, *steady(a_pod(job, index, began=NOW - timedelta(minutes=5)), 20))
    page = as_(people.alice).get(reverse("usage:job", args=[job.uid])).content.decode()
    assert '"name":"main"' in page
    assert '"name":"main-0"' not in page


def test_with_the_history_of_a_job_its_use_goes_too(people: People) -> None:
    job, other = people.submit(), people.submit("other")
    measured(people, *steady(a_pod(job), 5), *steady(a_pod(other), 3))
    Job.objects.filter(pk=job.pk).delete()
    assert Sample.objects.count() == 3
