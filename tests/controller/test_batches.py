"""A batch of jobs on a cluster."""

import pytest
from django.test import Client
from tests.controller.conftest import World

from hekla.apps.batches import selectors, services
from hekla.apps.jobs.models import Job
from hekla.apps.notifications import labels
from hekla.apps.notifications import services as notifications
from hekla.apps.notifications.models import Notification
from hekla.controller.tasks import follow_metrics
from hekla.domain.sweeps import SweepSpec
from hekla.lib import clock


@pytest.mark.parametrize("world", ["simulated"], indirect=True)
def test_batch_runs_as_many_jobs_as_fit_and_stops_the_rest(world: World) -> None:
    task = {"name": "main", "command": ["sleep", "{{ n }}"], "resources": {"cpu": "2"}}
    spec = SweepSpec.parse({"name": "many", "parameters": {"n": [1, 2, 3, 4, 5]}, "job": {"tasks": [task]}})
    batch = services.submit_sweep(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: Job.objects.filter(phase="running").count() == 2)
    services.stop(batch, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: set(selectors.phase_counts([batch])[batch.pk]) <= {"aborted", "completed"})
    assert sum(selectors.phase_counts([batch])[batch.pk].values()) == 5


@pytest.mark.parametrize("world", ["local"], indirect=True)
def test_printed_metrics_are_compared_and_the_end_notifies_once(world: World, client: Client) -> None:
    script = "echo ::metric step=1 loss={{ n }}; echo noise; echo ::metric step=2 loss=0.{{ n }}; exit {{ code }}"
    task = {"name": "main", "command": ["sh", "-c", script], "resources": {"cpu": "1"}}
    parameters = {"n": [7, 2, 5], "code": [0, 0, 1]}
    spec = SweepSpec.parse({"name": "many", "how": "list", "parameters": parameters, "job": {"tasks": [task]}})
    batch = services.submit_sweep(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())
    notifications.follow(now=clock.now())
    world.reconcile_until(lambda: not Job.objects.exclude(phase__in=["completed", "failed"]).exists())
    follow_metrics()
    notifications.follow(now=clock.now())
    assert {run.job.name: run.metrics["loss"] for run in selectors.runs(batch)}["many-2"] == {
        "last": 0.2, "min": 0.2, "max": 2, "count": 2, "last_step": 2, "min_step": 2, "max_step": 1,
    }  # fmt: skip
    notice = Notification.objects.get()
    assert labels.sentence(notice) == ("Batch many has ended: 2 jobs completed, 1 failed. Best run: many-2 (loss 0.2).")
    client.force_login(world.alice, backend="django.contrib.auth.backends.ModelBackend")
    page = client.get(notice.page).content.decode()
    assert page.count("<polyline") == 3
    assert '"name":"n=2 code=0"' in page
