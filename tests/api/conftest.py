"""Alice owns the jobs, Bob is a member of her tenant, Charlie is an outsider, Root is the platform admin."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from pytest_django import DjangoDbBlocker
from rest_framework.test import APIClient
from tests.support.shared_rows import rolled_back, undone_test

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Cluster, NodeFacts
from hekla.apps.event_log.services import PLATFORM, unit_of_work
from hekla.apps.queues import services as queues
from hekla.apps.queues.models import Queue
from hekla.apps.tenancy import services as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.lib import clock


@dataclass
class World:
    """The people and rows that the tests use."""

    people: dict[str, User]
    tenant: Tenant
    cluster: Cluster
    queue: Queue

    def as_(self, name: str) -> APIClient:
        """A client with a token of this person."""
        token = accounts.create_token(self.people[name], name="test", lifetime=timedelta(hours=1), now=clock.now())
        client = APIClient()
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {token}")
        return client


@pytest.fixture(scope="module")
def shared_world(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    """The rows of `make_world`, in a transaction around all tests of a module."""
    with django_db_blocker.unblock(), rolled_back():
        yield make_world()


@pytest.fixture
def db(shared_world: World) -> Iterator[None]:
    with undone_test():
        yield


@pytest.fixture
def world(db: None, shared_world: World, settings: Any, tmp_path: Any) -> World:
    """Copies of the objects, because a test changes them, and a data folder of their own."""
    settings.HEKLA_HOME = tmp_path
    return deepcopy(shared_world)


@unit_of_work()
def make_world() -> World:
    """Two tenants, a cluster of one node with four processors, one queue for all and one for Charlie's tenant."""
    now = clock.now()
    names = ("alice", "bob", "charlie", "root")
    people = {n: accounts.create_user(username=n, password=None, actor=PLATFORM, now=now) for n in names}
    people["root"].platform_role = "admin"
    people["root"].save()
    lab = tenancy.create(slug="lab", name="Lab", actor=PLATFORM, now=now)
    other = tenancy.create(slug="other", name="Other", actor=PLATFORM, now=now)
    for tenant, name, role in ((lab, "alice", "member"), (lab, "bob", "member"), (other, "charlie", "admin")):
        tenancy.add_member(tenant, people[name], role, actor=PLATFORM, now=now)
    size = {"cpu": "4", "memory": "8Gi", "pods": "20"}
    config = {"nodes": [{"name": "n", "allocatable": size}], "seed": 1, "speed": 10}
    cluster = clusters.create(name="sim", kind="simulated", config=config, actor=PLATFORM, now=now)
    clusters.observe_nodes(cluster, [NodeFacts("n", size, {})], now=now)
    queue = queues.create(cluster=cluster, name="default", actor=PLATFORM, now=now)
    queues.create(cluster=cluster, name="theirs", tenants=[other], actor=PLATFORM, now=now)
    return World(people, lab, cluster, queue)


@pytest.fixture
def alice(world: World) -> APIClient:
    return world.as_("alice")


@pytest.fixture
def bob(world: World) -> APIClient:
    return world.as_("bob")


@pytest.fixture
def charlie(world: World) -> APIClient:
    return world.as_("charlie")


@pytest.fixture
def root(world: World) -> APIClient:
    return world.as_("root")


def job(name: str = "train", **changes: Any) -> dict[str, Any]:
    """A small valid job."""
    return {"name": name, "tasks": [{"name": "worker", "command": ["true"], "resources": {"cpu": "1"}}], **changes}


@pytest.fixture
def a_job() -> dict[str, Any]:
    return job()
