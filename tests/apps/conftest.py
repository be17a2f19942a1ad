"""Alice owns the jobs, Bob is a viewer of her tenant, Charlie is an outsider, Ada is the platform admin."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from django.test import Client

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Cluster, NodeFacts
from hekla.apps.event_log.services import PLATFORM, unit_of_work
from hekla.apps.jobs import services as jobs
from hekla.apps.jobs.models import Job
from hekla.apps.queues import services as queues
from hekla.apps.queues.models import Queue
from hekla.apps.tenancy import services as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock


@dataclass
class People:
    """The users and rows that the tests use."""

    ada: User
    alice: User
    bob: User
    charlie: User
    lab: Tenant
    other: Tenant
    cluster: Cluster
    queue: Queue

    def submit(self, name: str = "one", **more: object) -> Job:
        """Submit a job as Alice."""
        task = {"name": "main", "command": ["true"], "resources": {"cpu": "1"}}
        spec = JobSpec.parse({"name": name, "tasks": [task], **more})
        return jobs.submit(spec=spec, tenant=self.lab, user=self.alice, now=clock.now())


def _user(name: str, role: str = "") -> User:
    return accounts.create_user(
        username=name, password=None, display_name=name.title(), platform_role=role, actor=PLATFORM, now=clock.now()
    )


@pytest.fixture
def people(db: None) -> People:
    return make_people()


@unit_of_work()
def make_people() -> People:
    """Creates them in one unit of work, at half the cost of twelve."""
    now = clock.now()
    ada, alice, bob, charlie = _user("ada", "admin"), _user("alice"), _user("bob"), _user("charlie")
    lab = tenancy.create(slug="lab", name="Lab", actor=PLATFORM, now=now)
    other = tenancy.create(slug="other", name="Other", actor=PLATFORM, now=now)
    for user, tenant, role in ((alice, lab, "admin"), (bob, lab, "viewer"), (charlie, other, "admin")):
        tenancy.add_member(tenant, user, role, actor=PLATFORM, now=now)
    cluster = clusters.create(name="sim", kind="simulated", config={}, actor=PLATFORM, now=now)
    clusters.observe_nodes(cluster, [NodeFacts("n1", {"cpu": "4", "memory": "8Gi", "pods": "10"}, {})], now=now)
    queue = queues.create(cluster=cluster, name="default", actor=PLATFORM, now=now)
    return People(ada, alice, bob, charlie, lab, other, cluster, queue)


@pytest.fixture
def as_(people: People) -> Callable[[User], Client]:
    """A function that returns a browser with this user signed in."""

    def sign_in(user: User) -> Client:
        client = Client()
        client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
        return client

    return sign_in
