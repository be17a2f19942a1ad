"""Claims to the devices of a simulated cluster, which its configuration describes."""

from typing import Any

from tests.controller.conftest import SIZE, World
from tests.simulation.conftest import spec

from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.controller.backends import backend_of
from hekla.controller.controllers import controllers
from hekla.domain.scheduling_inputs import Input
from hekla.engine.policy import DEFAULT_POLICY_TEXT, parse
from hekla.lib import clock
from hekla.scheduling import supplies

Object = dict[str, Any]
WANTED = {"devices": {"requests": [{"name": "card", "exactly": {"deviceClassName": "gpu"}}]}}


def described(kind: str, name: str, spec: Object) -> Object:
    return {"kind": kind, "metadata": {"name": name}, "spec": spec}


HALF = [{"counterSet": "board", "counters": {"memory": {"value": "40Gi"}}}]
DEVICES = [
    described("DeviceClass", "gpu", {"selectors": [{"cel": {"expression": "device.driver == 'gpu.test'"}}]}),
    described(
        "ResourceSlice",
        "b",
        {
            "driver": "gpu.test",
            "nodeName": "b",
            "pool": {"name": "b"},
            "sharedCounters": [{"name": "board", "counters": {"memory": {"value": "80Gi"}}}],
            "devices": [{"name": f"gpu-{at}", "consumesCounters": HALF} for at in range(2)],
        },
    ),
    described("ResourceClaimTemplate", "one", {"spec": WANTED}),
    described("ResourceClaim", "shared", WANTED),
]


def submit(world: World, name: str, replicas: int, **claim: str) -> Job:
    wanted = spec(name, replicas, cpu="1", min_available=1, resource_claims=[{"name": "gpu", **claim}])
    return services.submit(spec=wanted, tenant=world.tenant, user=world.alice, now=clock.now())


def placed(job: Job) -> list[str]:
    return sorted(Pod.objects.filter(job=job).exclude(node="").values_list("node", flat=True))


def test_devices_decide_where_pods_are_placed(transactional_db: None, settings: Any, tmp_path: Any) -> None:
    settings.HEKLA_HOME = tmp_path
    controllers.reset()
    nodes = [{"name": name, "allocatable": SIZE} for name in ("a", "b")]
    world = World.found("simulated", {"nodes": nodes, "devices": DEVICES, "speed": 1})
    try:
        three = submit(world, "three", 3, resource_claim_template_name="one")
        world.reconcile_until(lambda: bool(placed(three)))
        assert placed(three) == ["b", "b"]
        waits = submit(world, "waits", 1, resource_claim_name="shared")
        world.reconcile_until(lambda: bool(Job.objects.get(pk=waits.pk).waiting))
        assert Job.objects.get(pk=waits.pk).waiting[0]["nodes"] == {"no device to claim": 2}
        assert supplies.supplied(world.cluster, parse(DEFAULT_POLICY_TEXT))[Input.DEVICES]
    finally:
        backend_of(world.cluster).close()
        controllers.reset()
