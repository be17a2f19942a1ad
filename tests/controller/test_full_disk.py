"""A node with a full disk: jobs wait and say why; they start when there is space."""

import pytest
from tests.controller.conftest import World

from hekla.apps.job_history import cluster_notices, labels
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job
from hekla.backends.local import machine
from hekla.controller.controllers import controllers
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock


def submit(world: World, cpu: str) -> Job:
    task = {"name": "main", "command": ["true"], "resources": {"cpu": cpu}}
    spec = JobSpec.parse({"name": "one", "queue": "default", "tasks": [task]})
    return services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())


@pytest.mark.parametrize("world", ["local"], indirect=True)
def test_job_on_a_full_disk_waits_and_names_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(machine, "MIN_FREE_DISK_BYTES", float("inf"))
        controllers.reconcile(world.cluster)
        job = submit(world, "1")
        controllers.reconcile(world.cluster)
        job.refresh_from_db()
        sentences = [labels.reason(reason) for reason in job.waiting]
        assert "unschedulable" in sentences[0]
        assert not any("never" in sentence for sentence in sentences)
        assert "MiB are free on the disk of" in cluster_notices.of_job(job)[0]
    controllers.get(world.cluster.pk).reading_nodes.done_at = None  # nodes are read every ten seconds
    world.reconcile_until(lambda: Job.objects.get().phase == "completed")
