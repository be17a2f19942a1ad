"""A draining queue admits no job; its running jobs complete, then it is empty. A closed one is so in Volcano only."""

import pytest
from tests.controller.conftest import World
from tests.controller.test_cluster_controller import phase, submit

from hekla.apps.clusters import services as clusters
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.job_history import labels
from hekla.apps.jobs.models import Job
from hekla.apps.jobs.services.submission import QueueNotOpen
from hekla.apps.queues import services as queues
from hekla.controller.controllers import controllers
from hekla.lib import clock

pytestmark = pytest.mark.parametrize("world", ["simulated"], indirect=True)


def test_drained_queue_completes_running_jobs_and_holds_pending_ones(world: World) -> None:
    runs = submit(world, "runs", ["sleep", "8"], replicas=4, seconds=8)
    world.reconcile_until(lambda: phase(runs) == "running")
    waits = submit(world, "waits", ["true"])
    queues.set_state(world.queue, "draining", by=world.alice, actor=PLATFORM, now=clock.now())
    with pytest.raises(QueueNotOpen, match=r"is draining since .* \(by alice\)"):
        submit(world, "late", ["true"])
    world.reconcile_until(lambda: phase(runs) == "completed")
    for _ in range(3):
        controllers.reconcile(world.cluster)
    assert phase(waits) == "pending"
    assert labels.reason(Job.objects.get(pk=waits.pk).waiting[0]).startswith("The queue is draining")
    queues.set_state(world.queue, "open", by=world.alice, actor=PLATFORM, now=clock.now())
    world.reconcile_until(lambda: phase(waits) == "completed")
    kinds = LoggedEvent.objects.filter(subject=f"queue:{world.queue.pk}").order_by("id").values_list("kind", flat=True)
    assert list(kinds)[-2:] == ["QueueDrained", "QueueOpened"]


PROPORTION = """\
actions: "enqueue, allocate"
compatibility: {compatibility}
tiers:
- plugins: [{{name: gang}}, {{name: predicates}}, {{name: proportion}}]
"""


def follow(world: World, compatibility: str) -> None:
    text = PROPORTION.format(compatibility=compatibility)
    clusters.set_policy(world.cluster, text, note="", by=world.alice, actor=PLATFORM, now=clock.now())


def test_jobs_of_a_closed_queue_wait_only_under_a_policy_that_follows_volcano(world: World) -> None:
    waits = submit(world, "waits", ["true"])
    needs_nothing = submit(world, "admitted", ["true"], min_resources={"cpu": "0"})
    queues.set_state(world.queue, "closed", by=world.alice, actor=PLATFORM, now=clock.now())
    follow(world, "volcano")
    for _ in range(3):
        controllers.reconcile(world.cluster)
    assert (phase(waits), phase(needs_nothing)) == ("pending", "pending")
    assert labels.reason(Job.objects.get(pk=waits.pk).waiting[0]).startswith("The queue is closed")
    phases = Job.objects.filter(queue=world.queue).order_by("pk").values_list("gang_phase", flat=True)
    assert list(phases) == ["pending", "inqueue"]
    follow(world, "hekla")
    world.reconcile_until(lambda: (phase(waits), phase(needs_nothing)) == ("completed", "completed"))
