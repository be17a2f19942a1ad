"""Recorded cycles on the command line, of a console that placed a job."""

import json

import pytest

from hekla.apps.cycle_records.models import CycleRecord
from hekla.apps.jobs import services
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock

pytestmark = pytest.mark.parametrize("world", ["simulated"], indirect=True)


def test_cycles_are_listed_downloaded_and_replayed(console, world, tmp_path):
    refused = console("decisions", "list", "simulated")
    assert refused.exit_code != 0
    world.alice.platform_role = "operator"
    world.alice.save()
    spec = JobSpec.parse({"name": "a", "tasks": [{"name": "w", "command": ["x"], "resources": {"cpu": "1"}}]})
    services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: CycleRecord.objects.filter(binds=1).exists())  # a busy machine needs several
    row = CycleRecord.objects.get(binds=1)
    listed = json.loads(console("decisions", "list", "simulated", "--json").stdout)
    assert row.pk in [one["id"] for one in listed]
    assert str(row.pk) in console("decisions", "list", "simulated").stdout
    assert "1 placed" in console("decisions", "show", str(row.pk)).stdout
    answer = json.loads(console("decisions", "show", str(row.pk), "--json").stdout)
    (number,) = {step["job"]["uid"] for action in answer["actions"] for step in action["steps"]}
    assert "chosen" in console("decisions", "show", str(row.pk), "--job", number).stdout
    file = tmp_path / "cycle.json"
    assert console("decisions", "download", str(row.pk), str(file)).exit_code == 0
    for source in (str(file), str(row.pk)):
        assert console("decisions", "replay", source).stdout == "Equal: 1 binds, 0 evictions, 0 pipelined.\n"
