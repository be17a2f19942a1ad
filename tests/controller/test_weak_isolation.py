"""A machine that cannot keep pods apart serves one tenant, until an admin accepts the risk, and that is on record."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from tests.controller.conftest import World

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.clusters import services as clusters
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job
from hekla.apps.tenancy import services as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.backends.local import isolation
from hekla.backends.local.sandbox.order import LAYERS
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock

pytestmark = pytest.mark.parametrize("world", ["local"], indirect=True)
RISK = "accept_weak_isolation"
REFUSAL = "serves only the tenant that used it first"
NOT_APART = "Pods are not kept apart from one another and from the console."
Accept = Callable[[Client, str, dict[str, Any]], Any]


@pytest.fixture(autouse=True)
def without_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "failures", lambda: dict.fromkeys(LAYERS, "not permitted"))


@pytest.fixture
def other(world: World) -> tuple[Tenant, User]:
    """A second tenant with a member."""
    now = clock.now()
    charlie = accounts.create_user(username="charlie", password=None, actor=PLATFORM, now=now)
    tenant = tenancy.create(slug="other", name="Other", actor=PLATFORM, now=now)
    tenancy.add_member(tenant, charlie, "member", actor=PLATFORM, now=now)
    return tenant, charlie


def run(world: World, tenant: Tenant, user: User) -> tuple[str, str]:
    """Run a job to its end. Returns its phase and the message of its pod."""
    spec = JobSpec.parse({"name": f"work-{Job.objects.count()}", "tasks": [{"name": "main", "command": ["true"]}]})
    job = services.submit(spec=spec, tenant=tenant, user=user, now=clock.now())
    world.reconcile_until(lambda: Job.objects.get(pk=job.pk).is_final)
    job.refresh_from_db()
    return str(job.phase), str(job.pods.get().message)


def signed_in(name: str, role: str = "") -> Client:
    user = accounts.create_user(username=name, password=None, platform_role=role, actor=PLATFORM, now=clock.now())
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def by_page(client: Client, name: str, config: dict[str, Any]) -> Any:
    return client.post(reverse("clusters:edit", args=[name]), {"config": json.dumps(config)})


def by_rest(client: Client, name: str, config: dict[str, Any]) -> Any:
    return client.patch(
        reverse("api:v1:cluster", args=[name]), json.dumps({"config": config}), content_type="application/json"
    )


@pytest.mark.parametrize("accept", [by_page, by_rest])
def test_second_tenant_waits_for_an_admin_who_accepts_the_risk(world: World, other: Any, accept: Accept) -> None:
    member, admin = signed_in("mia"), signed_in("ada", "admin")
    assert run(world, world.tenant, world.alice)[0] == "completed"
    phase, message = run(world, *other)
    assert (phase, REFUSAL in message) == ("failed", True)
    assert NOT_APART in admin.get(reverse("clusters:detail", args=[world.cluster.name])).content.decode()
    config = {**world.cluster.config, RISK: True}
    assert accept(member, world.cluster.name, config).status_code == 403
    assert REFUSAL in run(world, *other)[1]
    assert accept(admin, world.cluster.name, config).status_code in (200, 302)
    world.cluster.refresh_from_db()
    assert run(world, *other)[0] == "completed"
    event = LoggedEvent.objects.get(kind="ClusterChanged")
    assert (event.actor_name, event.payload["changes"]["config"]["new"][RISK]) == ("ada", True)


def test_risk_accepted_with_a_new_cluster_is_on_record(world: World) -> None:
    clusters.create(name="second", kind="local", config={RISK: True}, actor=PLATFORM, now=clock.now())
    clusters.create(name="third", kind="local", config={RISK: False}, actor=PLATFORM, now=clock.now())
    event = LoggedEvent.objects.get(kind="ClusterChanged")
    assert event.payload == {"name": "second", "changes": {f"config.{RISK}": {"old": None, "new": True}}}
