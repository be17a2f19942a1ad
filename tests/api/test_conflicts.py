"""Two people change the same thing at the same time, with the ETag that both have read: one of them is told."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from tests.apps.conftest import People, make_people
from tests.support.examples import examples

from hekla.apps.clusters import services as clusters
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs.models import Job
from hekla.apps.presets import services as presets
from hekla.apps.presets.models import Preset
from hekla.apps.priorities import services as priorities
from hekla.apps.queues import services as queues
from hekla.apps.schedules import services as schedules
from hekla.apps.schedules.models import Schedule
from hekla.apps.tenancy import departments
from hekla.domain.jobspec import JobSpec
from hekla.domain.schedules import ScheduleSpec
from hekla.lib import clock

PAIRS = examples(20)
DOCUMENT = {"name": "sent", "tasks": [{"name": "main", "command": ["true"]}]}


@dataclass(frozen=True, slots=True)
class Resource:
    """The address of a resource, an edit that sets one field to `value(number)`, and where a GET shows the field."""

    address: Callable[[], str]
    method: str
    edit: Callable[[Any], dict[str, Any]]
    field: Callable[[Any], Any]
    value: Callable[[int], Any] = int


def _text(address: str) -> Resource:
    return Resource(
        _at(address),
        "patch",
        lambda value: {"description": value},
        lambda data: data["description"],
        lambda number: f"text {number}",
    )


def _at(address: str) -> Callable[[], str]:
    return lambda: f"/api/v1/{address}"


def _minutes(address: Callable[[], str]) -> Resource:
    return Resource(
        address,
        "put",
        lambda value: {"moments": [], "channels": [], "long_wait_minutes": value},
        lambda data: data["long_wait_minutes"],
    )


RESOURCES = {
    "queue": Resource(_at("queues/default"), "patch", lambda value: {"weight": value}, lambda data: data["weight"]),
    "federated queue": _text("federated-queues/over"),
    "retention": Resource(
        _at("tenants/lab/retention"),
        "patch",
        lambda value: {"log_days": value, "history_days": 900},
        lambda data: data["log_days"],
    ),
    "department": _text("departments/science"),
    "cluster": Resource(
        _at("clusters/sim"), "patch", lambda value: {"config": {"seed": value}}, lambda data: data["config"]["seed"]
    ),
    "policy": Resource(
        _at("clusters/sim/policy"),
        "put",
        lambda value: {"text": value},
        lambda data: data["text"],
        lambda number: f"actions: allocate\ntiers:\n- plugins: [{{name: gang}}]\n# {number}\n",
    ),
    "quotas": Resource(
        _at("tenants/lab/quotas"),
        "put",
        lambda value: {"of": "tenant", "jobs": value},
        lambda data: data[0]["most_jobs"],
    ),
    "priority class": _text("priority-classes/high"),
    "saved template": Resource(
        lambda: f"/api/v1/saved_templates/{Preset.objects.get().uid}",
        "patch",
        lambda value: {"name": value},
        lambda data: data["name"],
        lambda number: f"p{number}",
    ),
    "schedule": Resource(
        lambda: f"/api/v1/schedules/{Schedule.objects.get().uid}",
        "patch",
        lambda value: {"cron": value},
        lambda data: data["spec"]["cron"],
        lambda number: f"{number % 60} {number // 60} * * *",
    ),
    "job size": Resource(
        lambda: f"/api/v1/jobs/{Job.objects.get().uid}/scale",
        "patch",
        lambda value: {"tasks": {"main": {"replicas": value}}},
        lambda data: data["tasks"]["main"]["replicas"],
    ),
    "job priority": Resource(
        lambda: f"/api/v1/jobs/{Job.objects.get().uid}/priority",
        "patch",
        lambda value: {"priority": value},
        lambda data: data["priority"],
    ),
    "notification settings": _minutes(_at("notifications/settings")),
    "job notifications": _minutes(lambda: f"/api/v1/jobs/{Job.objects.get().uid}/notifications"),
}


@pytest.fixture
def people(transactional_db: None, settings: Any) -> People:
    """One row of each kind, which Ada may edit."""
    settings.API_REQUESTS_A_MINUTE = 100_000
    people, acts = make_people(), {"actor": PLATFORM, "now": clock.now()}
    beyond = clusters.create(name="beyond", kind="simulated", config={}, **acts)
    queues.create_federated(
        name="over", members=[people.queue, queues.create(cluster=beyond, name="far", **acts)], **acts
    )
    departments.create(slug="science", name="Science", **acts)
    priorities.create(name="high", values={"value": 1}, **acts)
    spec = JobSpec.parse(DOCUMENT)
    presets.save(name="usual", spec=spec, user=people.ada, tenant=None, now=clock.now())
    nightly = ScheduleSpec.parse({"name": "nightly", "cron": "@daily", "job": DOCUMENT})
    schedules.create(spec=nightly, tenant=people.lab, user=people.alice, now=clock.now())
    people.submit("one")
    return people


@pytest.fixture
def browsers(people: People) -> tuple[Client, Client]:
    found = Client(), Client()
    for client in found:
        client.force_login(people.ada, backend="django.contrib.auth.backends.ModelBackend")
    return found


def _send(client: Client, resource: Resource, value: object, etag: str) -> int:
    send = getattr(client, resource.method)
    try:
        answer = send(
            resource.address(),
            resource.edit(value),
            content_type="application/json",
            headers={"If-Match": etag, "Accept": "application/json"},
        )
        return int(answer.status_code)
    finally:
        connection.close()


@pytest.mark.parametrize("name", RESOURCES)
def test_one_of_two_edits_of_what_both_have_read_is_refused(browsers: tuple[Client, Client], name: str) -> None:
    resource = RESOURCES[name]
    reader = browsers[0]
    with ThreadPoolExecutor(2) as threads:
        for pair in range(PAIRS):
            values = [resource.value(2 * pair + number) for number in (2, 3)]
            etag = reader.get(resource.address())["ETag"]
            found = list(threads.map(_send, browsers, [resource] * 2, values, [etag] * 2))
            assert sorted(found) == [200, 412]
            assert resource.field(reader.get(resource.address()).json()) == values[found.index(200)]
