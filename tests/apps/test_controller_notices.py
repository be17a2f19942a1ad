"""A controller that hangs, or fails unexpectedly, is named wherever people wait for its jobs."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.accounts.models import User
from hekla.apps.clusters import leases, notices
from hekla.apps.clusters.models import Cluster, Lease, Node
from hekla.apps.job_history import cluster_notices
from hekla.apps.jobs import selectors
from hekla.apps.jobs.models import Job, Pod
from hekla.lib import clock

__all__ = ["db", "people", "shared_people"]

As = Callable[[User], Client]
PLACE = {"index": 0, "version": 1, "slot": 1, "address": ""}
SILENT = "The controller of cluster sim has not reported for 90 s. Running pods continue; nothing new starts."
FAULTY = (
    "The controller of cluster sim meets an unexpected error and keeps trying. "
    "Running pods continue; new ones may not start."
)


def hang(seconds: int = 90) -> None:
    """The controller of every cluster renewed its lease that long ago."""
    for cluster in Cluster.objects.all():
        leases.take(cluster, "one", now=clock.now())
    Lease.objects.update(expires_at=clock.now() - timedelta(seconds=seconds) + leases.LIFETIME)


def fail() -> None:
    for cluster in Cluster.objects.all():
        leases.take(cluster, "one", now=clock.now())
    leases.report_fault(Cluster.objects.get().pk, "one", "KeyError: 'secret detail'")


def rounded(text: str) -> str:
    """The text with 90 for a silence of 90 s and as long as the test takes."""
    return re.sub(r"for 9\d s", "for 90 s", text)


def pod_of(job: Job) -> Pod:
    """Its only pod, which has no node yet."""
    return Pod.objects.get_or_create(job=job, task="main", attempt=0, defaults={"created_at": clock.now(), **PLACE})[0]


def pages(job: Job) -> list[str]:
    pod = reverse("jobs:pod", args=[job.uid, pod_of(job).pk])
    return [reverse("jobs:detail", args=[job.uid]), pod, reverse("home"), reverse("clusters:nodes")]


@pytest.mark.parametrize(("happens", "sentence"), [(hang, SILENT), (fail, FAULTY)])
def test_job_pod_home_and_nodes_name_the_controller(
    people: People, as_: As, happens: Callable[[], None], sentence: str
) -> None:
    job = people.submit()
    for url in pages(job):
        assert "The controller of" not in as_(people.alice).get(url).content.decode()
    happens()
    for url in pages(job):
        page = rounded(as_(people.alice).get(url).content.decode())
        assert page.count(sentence) == 1, url
        assert "secret detail" not in page
    detail = rounded(as_(people.ada).get(reverse("clusters:detail", args=["sim"])).content.decode())
    assert sentence in detail
    assert ("secret detail" in detail) == (happens is fail)


def test_rest_names_the_controller(people: People, as_: As) -> None:
    job = people.submit()
    url = f"/api/v1/jobs/{job.uid}"
    assert as_(people.alice).get(url).json()["notice"] == ""
    hang()
    assert rounded(as_(people.alice).get(url).json()["notice"]) == SILENT
    Job.objects.update(phase="completed", finished_at=clock.now())
    assert as_(people.alice).get(url).json()["notice"] == "", "it needs no controller any more"


def test_paused_cluster_and_short_silence_need_no_notice(people: People) -> None:
    hang(59)
    assert notices.everywhere() == []
    hang(600)
    assert notices.everywhere() == [SILENT.replace("90 s", "10 min")]
    Cluster.objects.update(is_paused=True)
    assert notices.everywhere() == []


def test_notice_of_a_job_or_pod_costs_no_query_and_that_of_all_clusters_one(
    people: People, django_assert_num_queries: Callable[[int], Any]
) -> None:
    job = selectors.get(people.submit().uid, people.alice)
    number = pod_of(job).pk
    hang()
    with django_assert_num_queries(0):
        assert notices.of_cluster(job.cluster) == "", "as of when the job was read"
    pod = selectors.pod(number, people.alice)
    with django_assert_num_queries(0):
        assert [*map(rounded, cluster_notices.of_pod(pod))] == [SILENT]
    with django_assert_num_queries(1):
        assert [*map(rounded, notices.everywhere())] == [SILENT]


def test_pod_that_has_ended_needs_no_controller(people: People, as_: As) -> None:
    job = people.submit()
    pod = pod_of(job)
    url = reverse("jobs:pod", args=[job.uid, pod.pk])
    hang()
    Pod.objects.filter(pk=pod.pk).update(phase="running", node="n")
    assert rounded(as_(people.alice).get(url).content.decode()).count(SILENT) == 1
    Pod.objects.filter(pk=pod.pk).update(phase="succeeded", finished_at=clock.now())
    assert "The controller of" not in as_(people.alice).get(url).content.decode()


def refuse(job: Job, nodes: dict[str, int], message: str = "Only 12 MiB are free on the disk of /data.") -> None:
    """The engine found no node for the job, and the node reports this message."""
    Node.objects.create(cluster=job.cluster, name="vm", allocatable={}, is_ready=False, message=message)
    reason = {"cause": "constraint", "action": "allocate", "plugin": "predicates", "code": "no_node_fits", "ever": True}
    Job.objects.update(waiting=[{**reason, "need": {"cpu": 1000}, "have": {}, "pods": 1, "nodes": nodes, "tasks": []}])


def test_job_names_the_reason_of_a_node_that_is_not_ready(people: People, as_: As) -> None:
    job = people.submit()
    refuse(job, {"not schedulable": 1})
    sentence = "Node vm accepts no pods: Only 12 MiB are free on the disk of /data."
    detail, pod = pages(job)[:2]
    page = as_(people.alice).get(detail).content.decode()
    assert sentence in page
    assert "never start" not in page
    assert sentence in as_(people.alice).get(pod).content.decode()
    assert as_(people.alice).get(f"/api/v1/jobs/{job.uid}").json()["notice"] == sentence


def test_job_that_lacks_room_elsewhere_is_not_about_that_node(people: People, as_: As) -> None:
    job = people.submit()
    refuse(job, {"insufficient cpu": 1})
    page = as_(people.alice).get(reverse("jobs:detail", args=[job.uid])).content.decode()
    assert "accepts no pods" not in page
