"""A draining queue admits no job. Its running jobs complete, and then it is empty."""

import pytest
from tests.controller.conftest import World
from tests.controller.test_cluster_controller import phase, submit

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
