"""What tenants and their members may have: who sets it, and what is refused once they have it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.test_queue_pages import run

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

As = Callable[[User], Client]
GPU = {"name": "main", "command": ["true"], "resources": {"nvidia.com/gpu": "2"}}
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def bound(people: People, of: str, user: User | None = None, **bounds: int | None) -> None:
    services.set_quota(
        tenant=people.lab, of=Quota.Of(of), user=user, bounds=bounds, by=people.ada, actor=PLATFORM, now=clock.now()
    )


@pytest.fixture
def real(people: People) -> People:
    """The machine is real and has eight GPUs."""
    Cluster.objects.update(kind="local")
    Node.objects.update(allocatable={"cpu": "4", "memory": "8Gi", "pods": "10", "nvidia.com/gpu": "8"})
    return people


@pytest.mark.parametrize(
    ("of", "words"),
    [
        (
            "tenant",
            "Lab has 2 of 2 unfinished jobs. 1 more would exceed the quota. Wait until jobs finish, or ask a pla",
        ),
        ("each", "You have 2 of 2 unfinished jobs in Lab. 1 more would exceed the quota. Wait until jobs finish, or"),
    ],
)
def test_who_has_as_many_jobs_as_they_may_is_refused_in_words(people: People, of: str, words: str) -> None:
    bound(people, of, jobs=2)
    first = people.submit("first")
    people.submit("second")
    with pytest.raises(QuotaExceeded, match=words):
        people.submit("third")
    Job.objects.filter(pk=first.pk).update(phase="completed", finished_at=clock.now())
    assert people.submit("third").pk


def debugging(name: str) -> JobSpec:
    task = {"name": "main", "command": ["sleep", "infinity"]}
    return JobSpec.parse({"name": name, "kind": "debugging", "tasks": [task]})


@pytest.mark.parametrize(
    ("of", "words"),
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
def test_debugging_sessions_are_bounded_by_themselves(people: People, of: str, words: str) -> None:
    bound(people, of, sessions=1)
    asked = {"tenant": people.lab, "user": people.alice, "now": clock.now()}
    first = jobs.submit(spec=debugging("first"), **asked)
    with pytest.raises(QuotaExceeded, match=words):
        jobs.submit(spec=debugging("second"), **asked)
    assert people.submit("training").pk
    Job.objects.filter(pk=first.pk).update(phase="terminated", finished_at=clock.now())
    assert jobs.submit(spec=debugging("second"), **asked).pk


def test_a_members_own_quota_counts_instead_of_everybodys(people: People) -> None:
    bound(people, "each", jobs=0)
    with pytest.raises(QuotaExceeded):
        people.submit("first")
    bound(people, "one", people.alice, jobs=1)
    assert people.submit("first").pk
    bound(people, "one", people.alice, jobs=None)
    assert Quota.objects.count() == 1
    with pytest.raises(QuotaExceeded):
        people.submit("second")


def test_many_jobs_at_once_are_taken_in_whole_or_not(people: People) -> None:
    bound(people, "tenant", jobs=2)
    task = {"name": "main", "command": ["true"]}
    specs = [JobSpec.parse({"name": f"j{n}", "tasks": [task]}) for n in range(3)]
    with pytest.raises(QuotaExceeded, match="3 more would exceed the quota"):
        jobs.submit_many(specs=specs, tenant=people.lab, user=people.alice, now=clock.now())
    assert not Job.objects.exists()
    assert len(jobs.submit_many(specs=specs[:2], tenant=people.lab, user=people.alice, now=clock.now())) == 2


def test_what_would_be_refused_is_said_before_it_is_sent(people: People) -> None:
    bound(people, "tenant", jobs=1)
    people.submit("first")
    spec = JobSpec.parse({"name": "second", "tasks": [{"name": "main", "command": ["true"]}]})
    asked = {"tenant": people.lab, "user": people.alice, "now": clock.now()}
    with pytest.raises(QuotaExceeded, match="ask a platform admin"):
        jobs.try_out(spec=spec, **asked)
    with pytest.raises(QuotaExceeded, match="1 more would exceed the quota"):
        jobs.try_out_many(specs=[spec], **asked)
    bound(people, "tenant", jobs=2)
    jobs.try_out(spec=spec, **asked)
    assert Job.objects.count() == 1


def test_a_job_that_goes_on_is_one_more(people: People) -> None:
    first = people.submit("first")
    jobs.command(first, LifecycleAction.ABORT_JOB, user=people.alice, now=clock.now())
    Job.objects.filter(pk=first.pk).update(phase="aborted", finished_at=clock.now())
    bound(people, "each", jobs=1)
    second = people.submit("second")
    words = "You have 1 of 1 unfinished jobs in Lab"
    with pytest.raises(QuotaExceeded, match=words):
        jobs.command(first, LifecycleAction.RESUME_JOB, user=people.alice, now=clock.now())
    with pytest.raises(QuotaExceeded, match="Alice has 1 of 1 unfinished jobs in Lab"):
        jobs.command(first, LifecycleAction.RESUME_JOB, user=people.ada, now=clock.now())
    Job.objects.filter(pk=second.pk).update(phase="completed", finished_at=clock.now())
    assert not jobs.command(first, LifecycleAction.RESUME_JOB, user=people.alice, now=clock.now()).is_final


def held(job: Job, bound_at: datetime, finished_at: datetime | None) -> None:
    run(job)
    Pod.objects.filter(job=job).update(bound_at=bound_at, finished_at=finished_at)


@pytest.mark.parametrize(
    ("bound_at", "finished_at", "hours"),
    [
        (NOW - timedelta(hours=3), NOW - timedelta(hours=1), 4.0),
        (NOW - timedelta(hours=3), None, 6.0),
        (datetime(2026, 10, 31, 22, tzinfo=UTC), datetime(2026, 11, 1, 1, tzinfo=UTC), 2.0),
        (datetime(2026, 10, 1, tzinfo=UTC), datetime(2026, 10, 2, tzinfo=UTC), 0.0),
    ],
    ids=["ended", "still runs", "over the end of a month", "last month"],
)
def test_gpu_hours_count_from_bind_to_end_within_the_month(
    real: People, bound_at: datetime, finished_at: datetime | None, hours: float
) -> None:
    held(real.submit(tasks=[GPU]), bound_at, finished_at)
    assert sum(spending.gpu_hours(real.lab, NOW).values()) == pytest.approx(hours)
    Cluster.objects.update(kind="simulated")
    assert not sum(spending.gpu_hours(real.lab, NOW).values())


def test_who_has_used_their_gpu_hours_may_still_submit_what_needs_none(real: People) -> None:
    now = clock.now()
    bound(real, "tenant", gpu_hours=1)
    held(real.submit("first", tasks=[GPU]), max(now - timedelta(hours=2), spending.month_of(now)), None)
    bound(real, "tenant", gpu_hours=0)
    with pytest.raises(QuotaExceeded, match=r"Lab has used [\d.]+ of 0 GPU-hours this month, since"):
        real.submit("second", tasks=[GPU])
    assert real.submit("third").pk


@pytest.mark.parametrize(("of", "name", "may"), [
    ("tenant", "alice", False), ("each", "alice", True), ("one", "alice", True), ("each", "bob", False),
    ("tenant", "ada", True),
])  # fmt: skip
def test_who_may_set_which(people: People, of: str, name: str, may: bool) -> None:
    by, user = getattr(people, name), people.bob if of == "one" else None
    wish = {"tenant": people.lab, "of": Quota.Of(of), "user": user, "bounds": {"jobs": 3}}
    if may:
        services.set_quota(**wish, by=by, actor=PLATFORM, now=clock.now())
        assert LoggedEvent.objects.get(kind="QuotaSet").payload["changes"]["jobs"]["new"] == 3
    else:
        with pytest.raises(Forbidden):
            services.set_quota(**wish, by=by, actor=PLATFORM, now=clock.now())


def test_the_page_shows_bounds_and_use_and_sets_them(people: People, as_: As) -> None:
    address, alice = reverse("tenancy:quotas", args=["lab"]), as_(people.alice)
    alice.post(address, {"whose": "each", "jobs": "4"})
    alice.post(address, {"whose": "@bob", "jobs": "1", "gpu_hours": "5"})
    alice.post(address, {"whose": "tenant", "jobs": "100"})
    people.submit()
    assert sorted(Quota.objects.values_list("of", "jobs", "gpu_hours")) == [("each", 4, None), ("one", 1, 5)]
    page = alice.get(address).content.decode()
    assert ("1 / 4" in page, "0 / 1" in page, "0.0 / 5" in page) == (True, True, True)
    seen = as_(people.bob).get(address).content.decode()
    assert ("Alice" in seen, "Set quota" in seen, "0 / 1" in seen) == (False, False, True)
    assert as_(people.charlie).get(address).status_code == 404
