"""Quotas of tenants and members: who sets them, and what is refused."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people
from tests.apps.test_queue_pages import set_running

from hekla.apps.accounts.models import User
from hekla.apps.clusters.models import Cluster, Node
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services as jobs
from hekla.apps.jobs import spending
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.jobs.services.quota import QuotaExceeded
from hekla.apps.quotas import services
from hekla.apps.quotas.models import Quota
from hekla.domain.errors import Forbidden
from hekla.domain.jobspec import JobSpec
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock

__all__ = ["db", "people", "shared_people"]

As = Callable[[User], Client]
GPU = {"name": "main", "command": ["true"], "resources": {"nvidia.com/gpu": "2"}}
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def set_quota(people: People, of: str, user: User | None = None, **bounds: int | None) -> None:
    services.set_quota(
        tenant=people.lab, of=Quota.Of(of), user=user, bounds=bounds, by=people.ada, actor=PLATFORM, now=clock.now()
    )


@pytest.fixture
def real_node(people: People) -> People:
    """The node is real and has eight GPUs."""
    Cluster.objects.update(kind="local")
    Node.objects.update(allocatable={"cpu": "4", "memory": "8Gi", "pods": "10", "nvidia.com/gpu": "8"})
    return people


@pytest.mark.parametrize(
    ("of", "message"),
    [
        (
            "tenant",
            "Lab has 2 of 2 unfinished jobs. 1 more would exceed the quota. Wait until jobs finish, or ask a pla",
        ),
        ("each", "You have 2 of 2 unfinished jobs in Lab. 1 more would exceed the quota. Wait until jobs finish, or"),
    ],
)
def test_job_beyond_the_quota_is_refused(people: People, of: str, message: str) -> None:
    set_quota(people, of, jobs=2)
    first = people.submit("first")
    people.submit("second")
    with pytest.raises(QuotaExceeded, match=message):
        people.submit("third")
    Job.objects.filter(pk=first.pk).update(phase="completed", finished_at=clock.now())
    assert people.submit("third").pk


def debugging_spec(name: str) -> JobSpec:
    task = {"name": "main", "command": ["sleep", "infinity"]}
    return JobSpec.parse({"name": name, "kind": "debugging", "tasks": [task]})


@pytest.mark.parametrize(
    ("of", "message"),
    [
        (
            "tenant",
            "Lab has 1 of 1 debugging sessions. 1 more would exceed the quota. Stop one, or ask a platform admin.",
        ),
        (
            "each",
            "You have 1 of 1 debugging sessions in Lab. 1 more would exceed the quota. Stop one, or ask an admin of",
        ),
    ],
)
def test_debugging_sessions_have_their_own_quota(people: People, of: str, message: str) -> None:
    set_quota(people, of, sessions=1)
    common = {"tenant": people.lab, "user": people.alice, "now": clock.now()}
    first = jobs.submit(spec=debugging_spec("first"), **common)
    with pytest.raises(QuotaExceeded, match=message):
        jobs.submit(spec=debugging_spec("second"), **common)
    assert people.submit("training").pk
    Job.objects.filter(pk=first.pk).update(phase="terminated", finished_at=clock.now())
    assert jobs.submit(spec=debugging_spec("second"), **common).pk


def test_member_quota_overrides_the_default(people: People) -> None:
    set_quota(people, "each", jobs=0)
    with pytest.raises(QuotaExceeded):
        people.submit("first")
    set_quota(people, "one", people.alice, jobs=1)
    assert people.submit("first").pk
    set_quota(people, "one", people.alice, jobs=None)
    assert Quota.objects.count() == 1
    with pytest.raises(QuotaExceeded):
        people.submit("second")


def test_quota_applies_to_a_batch_as_a_whole(people: People) -> None:
    set_quota(people, "tenant", jobs=2)
    task = {"name": "main", "command": ["true"]}
    specs = [JobSpec.parse({"name": f"j{n}", "tasks": [task]}) for n in range(3)]
    with pytest.raises(QuotaExceeded, match="3 more would exceed the quota"):
        jobs.submit_many(specs=specs, tenant=people.lab, user=people.alice, now=clock.now())
    assert not Job.objects.exists()
    assert len(jobs.submit_many(specs=specs[:2], tenant=people.lab, user=people.alice, now=clock.now())) == 2


def test_dry_run_checks_the_quota(people: People) -> None:
    set_quota(people, "tenant", jobs=1)
    people.submit("first")
    spec = JobSpec.parse({"name": "second", "tasks": [{"name": "main", "command": ["true"]}]})
    common = {"tenant": people.lab, "user": people.alice, "now": clock.now()}
    with pytest.raises(QuotaExceeded, match="ask a platform admin"):
        jobs.try_out(spec=spec, **common)
    with pytest.raises(QuotaExceeded, match="1 more would exceed the quota"):
        jobs.try_out_many(specs=[spec], **common)
    set_quota(people, "tenant", jobs=2)
    jobs.try_out(spec=spec, **common)
    assert Job.objects.count() == 1


def test_resumed_job_counts(people: People) -> None:
    first = people.submit("first")
    jobs.command(first, LifecycleAction.ABORT_JOB, user=people.alice, now=clock.now())
    Job.objects.filter(pk=first.pk).update(phase="aborted", finished_at=clock.now())
    set_quota(people, "each", jobs=1)
    second = people.submit("second")
    message = "You have 1 of 1 unfinished jobs in Lab"
    with pytest.raises(QuotaExceeded, match=message):
        jobs.command(first, LifecycleAction.RESUME_JOB, user=people.alice, now=clock.now())
    with pytest.raises(QuotaExceeded, match="Alice has 1 of 1 unfinished jobs in Lab"):
        jobs.command(first, LifecycleAction.RESUME_JOB, user=people.ada, now=clock.now())
    Job.objects.filter(pk=second.pk).update(phase="completed", finished_at=clock.now())
    assert not jobs.command(first, LifecycleAction.RESUME_JOB, user=people.alice, now=clock.now()).is_final


def hold_gpus(job: Job, bound_at: datetime, finished_at: datetime | None) -> None:
    set_running(job)
    Pod.objects.filter(job=job).update(bound_at=bound_at, finished_at=finished_at)


@pytest.mark.parametrize(
    ("bound_at", "finished_at", "hours"),
    [
        (NOW - timedelta(hours=3), NOW - timedelta(hours=1), 4.0),
        (NOW - timedelta(hours=3), None, 6.0),
        (datetime(2026, 10, 31, 22, tzinfo=UTC), datetime(2026, 11, 1, 1, tzinfo=UTC), 2.0),
        (datetime(2026, 10, 1, tzinfo=UTC), datetime(2026, 10, 2, tzinfo=UTC), 0.0),
    ],
    ids=["ended", "still running", "across the end of a month", "last month"],
)
def test_gpu_hours_count_from_bind_to_end_within_the_month(
    real_node: People, bound_at: datetime, finished_at: datetime | None, hours: float
) -> None:
    hold_gpus(real_node.submit(tasks=[GPU]), bound_at, finished_at)
    hours_of = spending.card_hours(real_node.lab, NOW)
    assert hours_of.get(real_node.alice.pk, {}) == ({"nvidia.com/gpu": pytest.approx(hours)} if hours else {})
    Cluster.objects.update(kind="simulated")
    assert not spending.card_hours(real_node.lab, NOW)


def test_exhausted_gpu_hours_allow_jobs_without_gpus(real_node: People) -> None:
    now = clock.now()
    set_quota(real_node, "tenant", gpu_hours=1)
    hold_gpus(real_node.submit("first", tasks=[GPU]), max(now - timedelta(hours=2), spending.month_of(now)), None)
    set_quota(real_node, "tenant", gpu_hours=0)
    with pytest.raises(QuotaExceeded, match=r"Lab has used [\d.]+ of 0 GPU-hours this month, since"):
        real_node.submit("second", tasks=[GPU])
    assert real_node.submit("third").pk


@pytest.mark.parametrize(("of", "name", "is_allowed"), [
    ("tenant", "alice", False), ("each", "alice", True), ("one", "alice", True), ("each", "bob", False),
    ("tenant", "ada", True),
])  # fmt: skip
def test_rights_to_set_quotas(people: People, of: str, name: str, is_allowed: bool) -> None:
    by, user = getattr(people, name), people.bob if of == "one" else None
    quota = {"tenant": people.lab, "of": Quota.Of(of), "user": user, "bounds": {"jobs": 3}}
    if is_allowed:
        services.set_quota(**quota, by=by, actor=PLATFORM, now=clock.now())
        assert LoggedEvent.objects.get(kind="QuotaSet").payload["changes"]["jobs"]["new"] == 3
    else:
        with pytest.raises(Forbidden):
            services.set_quota(**quota, by=by, actor=PLATFORM, now=clock.now())


def test_page_shows_and_sets_quotas(people: People, as_: As) -> None:
    address, alice = reverse("tenancy:quotas", args=["lab"]), as_(people.alice)
    alice.post(address, {"whose": "each", "jobs": "4"})
    alice.post(address, {"whose": "@bob", "jobs": "1", "gpu_hours": "5"})
    alice.post(address, {"whose": "tenant", "jobs": "100"})
    people.submit()
    assert sorted(Quota.objects.values_list("of", "jobs", "gpu_hours")) == [("each", 4, None), ("one", 1, 5)]
    page = alice.get(address).content.decode()
    assert ("1 / 4" in page, "0 / 1" in page, "0.0 / 5" in page) == (True, True, True)
    html = as_(people.bob).get(address).content.decode()
    assert ("Alice" in html, "Set quota" in html, "0 / 1" in html) == (False, False, True)
    assert as_(people.charlie).get(address).status_code == 404
