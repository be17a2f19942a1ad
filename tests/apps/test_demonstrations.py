"""Demonstrations: pages, refusals with reasons, and their course."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.messages import get_messages
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.clusters import selectors as cluster_questions
from hekla.apps.clusters import services as clusters
from hekla.apps.demonstrations import services
from hekla.apps.demonstrations.catalogue import DEMONSTRATIONS
from hekla.apps.demonstrations.models import DemoRun
from hekla.apps.demonstrations.scenes import Demonstration
from hekla.apps.demonstrations.services import PAUSE_SECONDS
from hekla.apps.demonstrations.stage import Stage
from hekla.apps.demonstrations.stages import ELASTIC, GANGS, STAGES
from hekla.apps.event_log import selectors as event_log
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM, unit_of_work
from hekla.apps.jobs import services as jobs
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.queues import services as queues
from hekla.apps.queues.models import Queue
from hekla.apps.tenancy import services as tenancy
from hekla.domain.errors import Refused
from hekla.domain.policies import LifecycleAction
from hekla.engine import policy
from hekla.lib import clock
from hekla.pages.demonstrations import live as live_views

__all__ = ["db", "people", "shared_people"]

As = Callable[[User], Client]
NAMES = [one.name for one in DEMONSTRATIONS]
EACH_DEMONSTRATION = pytest.mark.parametrize("demonstration", DEMONSTRATIONS, ids=lambda one: one.name)


@pytest.fixture
def with_stages(people: People) -> People:
    """All simulated clusters of demonstrations exist."""
    with unit_of_work():
        for stage in STAGES:
            services.set_up(stage, now=clock.now())
    return people


def start(client: Client, name: str) -> Any:
    """Press the start button on the list of demonstrations."""
    address = reverse("demonstrations:list")
    return client.post(reverse("demonstrations:start", args=[name]), headers={"referer": f"http://testserver{address}"})


def refusal(client: Client, name: str) -> str:
    """The message of a refused start."""
    answer = start(client, name)
    assert answer["Location"].endswith(reverse("demonstrations:list"))
    return " ".join(str(message) for message in get_messages(answer.wsgi_request))


@EACH_DEMONSTRATION
def test_start_submits_jobs_and_shows_them(people: People, as_: As, demonstration: Demonstration) -> None:
    services.set_up(demonstration.stage, now=clock.now())
    alice = as_(people.alice)
    answer = start(alice, demonstration.name)
    assert answer["Location"] == reverse("demonstrations:detail", args=[demonstration.name])
    page = alice.get(answer["Location"]).content.decode()
    at_once = [act for act in demonstration.acts if not act.later]
    names = [f"{demonstration.name}-{act.name}-1" for act in at_once]
    assert list(Job.objects.order_by("id").values_list("name", flat=True)) == names
    assert all(f'id="demonstration-job-{job.pk}-title"' in page for job in Job.objects.all())
    assert "Simulation" in page
    assert ("The next job is submitted" in page) == (len(at_once) < len(demonstration.acts))


def test_list_has_a_start_button_for_each(with_stages: People, as_: As) -> None:
    page = as_(with_stages.bob).get(reverse("demonstrations:list")).content.decode()
    assert all(reverse("demonstrations:start", args=[name]) in page for name in NAMES)
    assert "Simulation" in page
    assert "Last run" not in page


def test_list_links_to_the_running_demonstration(with_stages: People, as_: As) -> None:
    start(as_(with_stages.alice), "gangs")
    page = as_(with_stages.bob).get(reverse("demonstrations:list")).content.decode()
    assert page.count(">Watch<") == 1
    assert f'href="{reverse("demonstrations:detail", args=["gangs"])}"' in page


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("home", "Explore gangs and elastic jobs on a simulated cluster"),
        ("jobs:list", "Open a demonstration"),
        ("help:index", "<span>Demonstrations</span>"),
    ],
)
def test_other_pages_link_to_demonstrations(people: People, as_: As, name: str, words: str) -> None:
    page = as_(people.alice).get(reverse(name)).content.decode()
    link = page[: page.index(words)].rpartition("<a ")[2]
    assert f'href="{reverse("demonstrations:list")}"' in link


def test_home_page_hides_demonstration_queues(with_stages: People, as_: As) -> None:
    page = as_(with_stages.alice).get(reverse("home")).content.decode()
    assert reverse("queues:detail", args=["default"]) in page
    assert "demo-gangs" not in page
    queues = as_(with_stages.alice).get(reverse("queues:list"), {"demonstrations": "yes"}).content.decode()
    assert "demo-gangs" in queues


def test_page_of_a_demonstration_that_was_not_started(with_stages: People, as_: As) -> None:
    page = as_(with_stages.alice).get(reverse("demonstrations:detail", args=["gangs"])).content.decode()
    assert "Your tenants have not started this demonstration yet" in page
    assert as_(with_stages.alice).get(reverse("demonstrations:detail", args=["magic"])).status_code == 404


def test_event_log_records_start_and_setup(people: People) -> None:
    before = event_log.last_number()
    services.start("gangs", tenant=people.lab, user=people.ada, now=clock.now())
    assert [event.kind for event in event_log.after(before, limit=20)] == [
        "ClusterCreated", "PolicyChanged", "QueueCreated", "DemonstrationStarted", "JobSubmitted", "JobSubmitted",
    ]  # fmt: skip


def test_start_without_a_plugin_changes_the_policy_of_the_stage(with_stages: People, as_: As) -> None:
    alice, address = as_(with_stages.alice), reverse("demonstrations:start", args=["racks"])
    page = alice.get(reverse("demonstrations:list")).content.decode()
    assert "Start without network-topology-aware" in page
    answer = alice.post(address, {"without": "network-topology-aware"})
    run = DemoRun.objects.get()
    assert run.without == "network-topology-aware"
    assert "network-topology-aware" not in cluster_questions.policy_text(run.cluster)
    page = alice.get(answer["Location"]).content.decode()
    whole, part = page.split('id="demonstration-side-without"')
    assert ("Not started yet." in whole, "The nodes now." in part) == (True, True)
    assert 'aria-label="node-1: free: 4"' in page
    alice.post(address)
    assert DemoRun.objects.count() == 1, "one at a time"
    assert "network-topology-aware" not in cluster_questions.policy_text(run.cluster)


def test_ended_run_shows_its_nodes_as_they_were(with_stages: People, as_: As) -> None:
    started = clock.now()
    run = services.start("gangs", tenant=with_stages.lab, user=with_stages.alice, now=started)
    first, second = run.jobs.order_by("id")
    for job, after in ((first, 2), (second, 14)):
        begin, end = (started + timedelta(seconds=after + more) for more in (1, 11))
        for index in range(4):
            facts = {"phase": "succeeded", "node": f"node-{index // 2 + 1}", "bound_at": begin, "finished_at": end}
            Pod.objects.create(
                job=job, task="worker", index=index, attempt=1, version=1, slot=index, created_at=started, **facts
            )
        Job.objects.filter(pk=job.pk).update(phase="completed", started_at=begin, finished_at=end)
    services.advance_all(now=started + timedelta(seconds=30))
    page = as_(with_stages.bob).get(reverse("demonstrations:detail", args=["gangs"])).content.decode()
    assert "The nodes 3 s after the start. This run has ended." in page
    assert 'aria-label="node-1: job 1: 2, free: 0"' in page
    assert "In this run, job 2 waited 15 s, until 1 of 1 other jobs had ended." in page
    assert "Start again" in page
    assert "Unexpected result" not in page


def test_page_shows_both_sides_before_both_have_run(with_stages: People, as_: As) -> None:
    services.start("links", tenant=with_stages.lab, user=with_stages.alice, now=clock.now())
    page = as_(with_stages.alice).get(reverse("demonstrations:detail", args=["links"])).content.decode()
    assert "With deviceshare" in page
    assert "Without deviceshare" in page
    assert page.count('aria-label="node-1, fast link 1: free: 2"') == 2
    assert "Not started yet." in page
    assert "A local cluster measures" in page


def test_hours_of_the_zone_end_once(with_stages: People) -> None:
    now = clock.now()
    run = services.start("hours", tenant=with_stages.lab, user=with_stages.alice, now=now)
    for job in run.jobs.all():
        for index in range(4):
            facts = {"phase": "running", "started_at": now - timedelta(minutes=1)}
            Pod.objects.create(
                job=job, task="worker", index=index, attempt=1, version=1, slot=index, created_at=now, **facts
            )
    before = cluster_questions.policies(run.cluster).count()
    for _ in range(2):
        services.advance_all(now=now)
    assert cluster_questions.policies(run.cluster).count() == before + 1
    assert f"-{now:%H:%M}" in str(cluster_questions.policy_text(run.cluster))


def test_only_what_is_offered_can_be_left_out(with_stages: People, as_: As) -> None:
    address = reverse("demonstrations:start", args=["racks"])
    assert as_(with_stages.alice).post(address, {"without": "gang"}).status_code == 404
    assert not DemoRun.objects.exists()


# Refusals.


def test_viewer_cannot_start(with_stages: People, as_: As) -> None:
    assert "but not submit to it" in refusal(as_(with_stages.bob), "gangs")
    assert not DemoRun.objects.exists()


def test_user_without_tenant_cannot_start(with_stages: People, as_: As) -> None:
    assert "not a member of a tenant" in refusal(as_(with_stages.ada), "gangs")


def test_missing_cluster_is_explained(people: People, as_: As) -> None:
    assert "demo-gangs does not exist yet" in refusal(as_(people.alice), "gangs")
    assert not DemoRun.objects.exists()


def test_cluster_manager_creates_the_cluster_by_starting(people: People, as_: As) -> None:
    otto = accounts.create_user(username="o", password=None, platform_role="operator", actor=PLATFORM, now=clock.now())
    tenancy.add_member(people.lab, otto, "member", actor=PLATFORM, now=clock.now())
    start(as_(otto), "gangs")
    assert DemoRun.objects.get().cluster.is_simulated
    assert LoggedEvent.objects.get(kind="ClusterCreated", payload__name="demo-gangs").actor_id == otto.pk


def _queue_of_another_cluster(people: People) -> str:
    queues.create(cluster=people.cluster, name="demo-gangs", actor=PLATFORM, now=clock.now())
    return "The queue demo-gangs belongs to another cluster"


def _not_simulated(_people: People) -> str:
    clusters.create(name="demo-gangs", kind="local", config={}, actor=PLATFORM, now=clock.now())
    return "The cluster demo-gangs is not simulated"


def _paused_cluster(_people: People) -> str:
    cluster = services.set_up(GANGS, now=clock.now())
    clusters.change(cluster, {"is_paused": True}, actor=PLATFORM, now=clock.now())
    return "demo-gangs is paused"


def _closed_queue(people: People) -> str:
    services.set_up(GANGS, now=clock.now())
    queue = Queue.objects.get(name="demo-gangs")
    queues.set_state(queue, "closed", by=people.ada, actor=PLATFORM, now=clock.now())
    return "Queue demo-gangs is closed since"


@pytest.mark.parametrize("arrange", [_queue_of_another_cluster, _not_simulated, _paused_cluster, _closed_queue])
def test_refused_start_leaves_nothing(people: People, arrange: Callable[[People], str]) -> None:
    sentence, ada = arrange(people), people.ada
    before = Queue.objects.count()
    with pytest.raises(Refused, match=sentence):
        services.start("gangs", tenant=people.lab, user=ada, now=clock.now())
    assert (DemoRun.objects.count(), Job.objects.count(), Queue.objects.count()) == (0, 0, before)


# One at a time.


def test_second_press_starts_nothing(with_stages: People, as_: As) -> None:
    for _ in range(2):
        assert start(as_(with_stages.alice), "gangs")["Location"] == reverse("demonstrations:detail", args=["gangs"])
    assert (DemoRun.objects.count(), Job.objects.count()) == (1, 2)


def test_one_run_at_a_time_per_cluster(with_stages: People, as_: As) -> None:
    start(as_(with_stages.alice), "elastic-at-once")
    assert "“Two elastic jobs at the same time” is running" in refusal(as_(with_stages.alice), "elastic-same-queue")
    assert "“Two elastic jobs at the same time” is running" in refusal(as_(with_stages.charlie), "elastic-at-once")
    start(as_(with_stages.charlie), "gangs")
    assert DemoRun.objects.count() == 2


def test_run_is_visible_to_its_tenant_only(with_stages: People, as_: As) -> None:
    start(as_(with_stages.alice), "gangs")
    address = reverse("demonstrations:detail", args=["gangs"])
    assert "gangs-first-1" in as_(with_stages.bob).get(address).content.decode()
    assert "gangs-first-1" not in as_(with_stages.charlie).get(address).content.decode()
    assert "gangs-first-1" not in live_views._demonstration(with_stages.charlie, {"name": "gangs"})
    assert "gangs-first-1" in live_views._demonstration(with_stages.bob, {"name": "gangs"})


# Progress of a run.


def test_run_with_stopped_jobs_ends_with_unexpected_result(with_stages: People, as_: As) -> None:
    run = services.start("elastic-same-queue", tenant=with_stages.lab, user=with_stages.alice, now=clock.now())
    jobs.command(run.jobs.get(), LifecycleAction.ABORT_JOB, user=with_stages.alice, now=clock.now())
    services.advance_all(now=clock.now())
    run.refresh_from_db()
    assert run.ended_at is not None
    assert LoggedEvent.objects.filter(kind="DemonstrationEnded", subject=f"demonstration:{run.pk}").exists()
    page = as_(with_stages.alice).get(reverse("demonstrations:detail", args=["elastic-same-queue"])).content.decode()
    assert "Unexpected result" in page
    start(as_(with_stages.alice), "elastic-same-queue")
    assert Job.objects.filter(name="elastic-same-queue-first-2").exists()


def let_run(run: DemoRun, count: int, *, since: datetime) -> None:
    """The first job of a run has its pods, and `count` of them run."""
    for index in range(10):
        facts = {"phase": "running", "started_at": since} if index < count else {"phase": "bound"}
        Pod.objects.create(
            job=run.jobs.get(), task="worker", index=index, attempt=1, version=1, slot=index, created_at=since, **facts
        )


@pytest.mark.parametrize(
    ("running", "seconds", "is_submitted"),
    [(9, 60, False), (10, PAUSE_SECONDS - 1, False), (10, PAUSE_SECONDS, True)],
)
def test_later_job_is_submitted_after_a_pause(
    with_stages: People, running: int, seconds: int, is_submitted: bool
) -> None:
    now = clock.now()
    run = services.start("elastic-same-queue", tenant=with_stages.lab, user=with_stages.alice, now=now)
    let_run(run, running, since=now - timedelta(seconds=seconds))
    for _ in range(2):
        services.advance_all(now=now)
    assert run.jobs.count() == 1 + is_submitted
    assert run.ended_at is None


def test_closed_queue_does_not_block_runs(with_stages: People) -> None:
    now = clock.now()
    run = services.start("elastic-other-queue", tenant=with_stages.lab, user=with_stages.alice, now=now)
    other = services.start("gangs", tenant=with_stages.lab, user=with_stages.alice, now=now)
    let_run(run, 10, since=now - timedelta(minutes=1))
    second = Queue.objects.get(name="demo-elastic-2")
    queues.set_state(second, "closed", by=with_stages.ada, actor=PLATFORM, now=now)
    services.advance_all(now=now)
    Job.objects.update(phase="completed")
    services.advance_all(now=now)
    ended = DemoRun.objects.filter(pk__in=[run.pk, other.pk]).exclude(ended_at=None)
    assert ended.count() == 2
    assert run.jobs.count() == 1


def test_changed_stage_is_restored(with_stages: People) -> None:
    cluster = cluster_questions.get(ELASTIC.name)
    clusters.change(cluster, {"config": {"nodes": []}}, actor=PLATFORM, now=clock.now())
    clusters.set_policy(cluster, "actions: allocate", note="", by=with_stages.ada, actor=PLATFORM, now=clock.now())
    services.start("elastic-at-once", tenant=with_stages.lab, user=with_stages.alice, now=clock.now())
    cluster.refresh_from_db()
    assert cluster.config == ELASTIC.config
    assert cluster_questions.policy_text(cluster) == ELASTIC.policy()


@pytest.mark.parametrize("stage", STAGES, ids=lambda one: one.name)
def test_stage_configuration_is_valid(stage: Stage) -> None:
    from hekla.backends.config import parse_config
    from hekla.backends.simulated.config import SimulatedConfig

    assert [node.name for node in parse_config(SimulatedConfig, stage.config).nodes] == [
        f"node-{number}" for number in range(1, len(stage.nodes) + 1)
    ]
    whole = policy.parse(stage.policy())
    for one in DEMONSTRATIONS:
        if one.stage is stage and one.without:
            name, (act, *_more) = one.without.name, one.acts
            is_other_job = act.spec("x", stage, name) != act.spec("x", stage)
            assert is_other_job != (policy.parse(stage.policy(name)) != whole), "it leaves out something that is there"
