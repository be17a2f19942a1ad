"""The page of a job links to its named ports if the cluster has an ingress."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people
from tests.apps.test_submission import post_data

from hekla.apps.accounts.models import User
from hekla.apps.clusters.models import Cluster
from hekla.apps.jobs import services as jobs
from hekla.apps.jobs.models import Job
from hekla.domain.phases import JobPhase
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock

__all__ = ["db", "people", "shared_people"]

As = Callable[[User], Client]
_INGRESS = {"domain": "jobs.example.org", "class_name": "nginx", "namespace": "ingress-nginx"}
_TASK = {"name": "main", "command": ["true"], "ports": {"board": 6006}}


def on_kubernetes(ingress: Any) -> None:
    Cluster.objects.update(kind=Cluster.Kind.KUBERNETES, config={"ingress": ingress} if ingress else {})


def running_job(people: People) -> Job:
    job = people.submit(tasks=[_TASK])
    Job.objects.filter(pk=job.pk).update(phase=JobPhase.RUNNING)
    return job


def page(as_: As, user: User, job: Job) -> str:
    return as_(user).get(reverse("jobs:detail", args=[job.uid])).content.decode()


@pytest.mark.parametrize(("tls", "scheme"), [(False, "http"), (True, "https")])
def test_readers_of_the_job_see_the_link(people: People, as_: As, tls: bool, scheme: str) -> None:
    job = running_job(people)
    on_kubernetes({**_INGRESS, "tls": tls})
    assert f'href="{scheme}://{job.uid.hex}-board.jobs.example.org/"' in page(as_, people.bob, job)


@pytest.mark.parametrize("ingress", [None, "nonsense", {"domain": 5}])
def test_no_link_without_an_ingress(people: People, as_: As, ingress: Any) -> None:
    job = running_job(people)
    on_kubernetes(ingress)
    assert f"{job.uid.hex}-board" not in page(as_, people.alice, job)


def test_pending_job_has_no_link(people: People, as_: As) -> None:
    job = people.submit(tasks=[_TASK])
    on_kubernetes(_INGRESS)
    assert f"{job.uid.hex}-board" not in page(as_, people.alice, job)


def test_finished_job_has_no_link(people: People, as_: As) -> None:
    job = running_job(people)
    jobs.command(job, LifecycleAction.ABORT_JOB, user=people.alice, now=clock.now())
    on_kubernetes(_INGRESS)
    assert f"{job.uid.hex}-board" not in page(as_, people.alice, job)


def test_clone_keeps_ports(people: People, as_: As) -> None:
    job = people.submit(tasks=[_TASK])
    context = as_(people.alice).get(f"{reverse('jobs:submit')}?clone={job.uid}").context
    form = SimpleNamespace(job=context["form"], tasks=context["tasks"], files=context["files"])
    as_(people.alice).post(reverse("jobs:submit"), post_data(form))
    (again,) = Job.objects.exclude(pk=job.pk)
    assert again.spec["tasks"][0]["ports"] == {"board": 6006}
