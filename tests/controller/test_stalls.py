"""Processes that really stop making progress, or make less than the others of their job."""

import pytest
from tests.controller.conftest import World

from hekla.apps.jobs import services as jobs
from hekla.apps.jobs.models import Pod
from hekla.apps.measures import stalls
from hekla.controller import job_metrics as reader
from hekla.controller.backends import backend_of
from hekla.domain.jobspec import JobSpec
from hekla.domain.stalls import StallSign
from hekla.lib import clock

_PROGRAM = """
step=0; pause=0.05
while true; do
  step=$((step+1)); echo "::metric step=$step loss=1"
  if [ $step = 3 ]; then sleep 0.4; fi
  if [ $VC_TASK_INDEX = 1 ] && [ $step = 6 ]; then exec sleep 60; fi
  if [ $VC_TASK_INDEX = 2 ]; then pause=0.3; fi
  sleep $pause
done
"""


@pytest.mark.parametrize("world", ["local"], indirect=True)
def test_the_process_that_stopped_and_the_slow_one_are_named(world: World) -> None:
    task = {"name": "main", "command": ["sh", "-c", _PROGRAM], "replicas": 3, "resources": {"cpu": "1"}}
    spec = JobSpec.parse({"name": "ranks", "tasks": [task], "plugins": {"env": []}})
    jobs.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: Pod.objects.filter(phase="running").count() == 3)
    found: dict[int, set[StallSign]] = {}
    wanted = {1: {StallSign.NO_METRICS}, 2: {StallSign.SLOW_REPLICA}}  # with no least time, each log is silent at times
    deadline = clock.now().timestamp() + 30
    while found != wanted:
        assert clock.now().timestamp() < deadline, found
        backend_of(world.cluster).wait(0.5)
        # The reader leaves a log alone for ten seconds; here all are due at once.
        _read_again()
        report = stalls.stalled(world.alice, minutes=0, now=clock.now())
        signs = {row.pod.index: {one.sign for one in row.stalls} - {StallSign.SILENT_LOG} for row in report.rows}
        found = {index: some for index, some in signs.items() if some}
    assert {row.pod.node for row in report.rows} == set(Pod.objects.values_list("node", flat=True))


def _read_again() -> None:
    from hekla.apps.job_metrics.models import MetricLog

    MetricLog.objects.update(due_at=clock.now())
    reader.read_metrics(now=clock.now())
