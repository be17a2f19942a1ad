"""New tenants get a default quota: unfinished jobs and pods. Admins see it and can change it."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.test_queue_pages import set_running
from tests.apps.test_quotas import set_quota

from hekla.apps.accounts.models import User
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services as jobs
from hekla.apps.jobs.services.quota import QuotaExceeded
from hekla.apps.quotas import services as quotas
from hekla.apps.quotas.models import Quota
from hekla.apps.tenancy.models import Tenant
from hekla.apps.usage import quota_usage
from hekla.domain.errors import Invalid
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock

As = Callable[[User], Client]
FIELDS = {"name": "Fresh", "slug": "fresh"}


def quota_of(slug: str) -> Quota:
    return Quota.objects.get(tenant__slug=slug, of="tenant")


def task(replicas: int) -> dict[str, object]:
    return {"name": "main", "command": ["true"], "replicas": replicas, "resources": {"cpu": "1m"}}


def test_the_form_offers_the_defaults_and_saves_them(people: People, as_: As) -> None:
    ada, address = as_(people.ada), reverse("tenancy:create")
    page = ada.get(address).content.decode()
    assert 'value="2000"' in page
    assert 'value="pods=1000"' in page
    assert ada.post(address, FIELDS | {"jobs": "2000", "resources": "pods=1000"}).status_code == 302
    assert (quota_of("fresh").jobs, quota_of("fresh").resources) == (2000, {"pods": "1000"})
    quotas_page = ada.get(reverse("tenancy:quotas", args=["fresh"])).content.decode()
    assert "0 of 1000 pods" in quotas_page


def test_the_admin_can_choose_other_limits_or_none(people: People, as_: As) -> None:
    ada, address = as_(people.ada), reverse("tenancy:create")
    assert "Unknown resource" in ada.post(address, FIELDS | {"resources": "gpu=1"}).content.decode()
    assert not Tenant.objects.filter(slug="fresh").exists()
    ada.post(address, FIELDS | {"jobs": "", "resources": ""})
    assert Tenant.objects.filter(slug="fresh").exists()
    assert not Quota.objects.filter(tenant__slug="fresh").exists()


def test_the_service_gives_the_defaults(people: People) -> None:
    made = quotas.create_tenant(slug="fresh", name="Fresh", actor=PLATFORM, now=clock.now())
    assert (quota_of(made.slug).jobs, quota_of(made.slug).resources) == (2000, {"pods": "1000"})


def test_submissions_beyond_the_quota_are_refused_with_the_numbers(people: People) -> None:
    set_quota(people, "tenant", jobs=2, resources={"pods": "5"})
    with pytest.raises(Invalid) as refused:
        people.submit("wide", tasks=[task(6)])
    together = "The job needs at least 6 of pods in total. The quota of Lab is 5. Ask a platform admin for more."
    assert [(one.path, one.message) for one in refused.value.problems] == [("tasks.0.replicas", together)]
    people.submit("fits", tasks=[task(5)])
    people.submit("elastic", tasks=[task(6)], min_available=5)
    spec = JobSpec.parse({"name": "third", "tasks": [task(1)]})
    with pytest.raises(QuotaExceeded, match="Lab has 2 of 2 unfinished jobs"):
        jobs.submit(spec=spec, tenant=people.lab, user=people.alice, now=clock.now())


def test_pods_in_use_are_counted(people: People) -> None:
    set_quota(people, "tenant", resources={"pods": "5"})
    set_running(people.submit("runs", tasks=[task(3)]), pods=3)
    (part,) = quota_usage.visible_rows(people.alice, people.lab, clock.now())[0].at_once
    assert part.words == "3 of 5 pods"
