"""Resource quotas: who sets them, jobs that could never start, and current usage."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people
from tests.apps.test_queue_pages import set_running
from tests.apps.test_quotas import set_quota

from hekla.apps.accounts.models import User
from hekla.apps.jobs import services as jobs
from hekla.apps.quotas.models import Quota
from hekla.apps.usage import quota_usage
from hekla.domain.errors import Invalid
from hekla.domain.scaling import JobScale
from hekla.lib import clock

__all__ = ["db", "people", "shared_people"]

As = Callable[[User], Client]


def task(replicas: int = 1, name: str = "main", cpu: str = "1") -> dict[str, object]:
    return {"name": name, "command": ["true"], "replicas": replicas, "resources": {"cpu": cpu}}


def problems(people: People, *tasks: dict[str, object], **more: object) -> list[tuple[str, str]]:
    with pytest.raises(Invalid) as refused:
        people.submit("big", tasks=list(tasks), **more)
    return [(problem.path, problem.message) for problem in refused.value.problems]


def test_impossible_job_is_refused_at_its_field(people: People) -> None:
    set_quota(people, "tenant", resources={"cpu": "2"})
    together = "The job needs at least 3 of cpu in total. The quota of Lab is 2. Ask a platform admin for more."
    assert problems(people, task(3)) == [("tasks.0.replicas", together)]
    assert problems(people, task(1), task(2, "more")) == [("tasks", together)]
    one = "One replica requests 3 of cpu. The quota of Lab is 2. Ask a platform admin for more."
    assert problems(people, task(2, cpu="3"))[-1] == ("tasks.0.resources.cpu", one)
    assert people.submit("elastic", tasks=[task(3)], min_available=2).pk


def test_member_quota_overrides_the_default(people: People) -> None:
    set_quota(people, "each", resources={"cpu": "1"})
    found = problems(people, task(2))
    assert "The quota of a member in Lab is 1. Ask an admin of Lab" in found[0][1]
    set_quota(people, "one", people.alice, jobs=5)
    assert people.submit("fits", tasks=[task(2)]).pk


def test_job_cannot_scale_beyond_the_quota(people: People) -> None:
    job = people.submit(tasks=[task(1)])
    set_quota(people, "tenant", resources={"cpu": "2"})
    with pytest.raises(Invalid, match="The quota of Lab is 2\\."):
        jobs.scale(job, JobScale.parse({"tasks": {"main": {"replicas": 3, "min_available": 3}}, "min_available": 3}),
                   user=people.alice, now=clock.now())  # fmt: skip


@pytest.mark.parametrize("name", ["gpu", "nvidia.com/gpu"])
def test_quota_of_an_unknown_resource_is_refused(people: People, name: str) -> None:
    with pytest.raises(Invalid, match=f"Unknown resource “{name}”. Available: cpu, memory"):
        set_quota(people, "tenant", resources={name: "1"})
    assert not Quota.objects.exists()


def test_usage_is_of_the_cluster_with_most_usage(people: People) -> None:
    set_quota(people, "tenant", resources={"cpu": "3", "memory": "0"})
    job = people.submit(tasks=[task(cpu="2")])
    assert [part.words for part in row(people).at_once] == ["0 of 3 CPU", "0 of 0 memory"]
    set_running(job)
    assert [(part.cluster, part.words) for part in row(people).at_once] == [
        ("sim", "2 of 3 CPU"),
        ("", "0 of 0 memory"),
    ]


def row(people: People) -> quota_usage.QuotaRow:
    return quota_usage.visible_rows(people.alice, people.lab, clock.now())[0]


def test_page_sets_shows_and_refuses_quotas(people: People, as_: As) -> None:
    address, ada = reverse("tenancy:quotas", args=["lab"]), as_(people.ada)
    refused = ada.post(address, {"whose": "tenant", "resources": "gpu=8"}).content.decode()
    assert "Unknown resource “gpu”" in refused
    ada.post(address, {"whose": "tenant", "jobs": "9", "resources": "cpu=64, memory=256Gi"})
    assert Quota.objects.get().resources == {"cpu": "64", "memory": "256Gi"}
    page = as_(people.bob).get(address).content.decode()
    assert ("0 of 64 CPU" in page, "0 of 256 GiB memory" in page, "?whose=" in page) == (True, True, False)
    form = ada.get(address, {"whose": "tenant"}).content.decode()
    assert ("cpu=64, memory=256Gi" in form, 'value="9"' in form) == (True, True)
    home = as_(people.alice).get(reverse("home_needs")).content.decode()
    assert "0 of 64 CPU at the same time" in home
