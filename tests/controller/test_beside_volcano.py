"""The real Volcano and Hekla decide the same Volcano Jobs on the same nodes of a real API server, and place them alike.

Volcano decides first, and its jobs are deleted. Hekla gets the same manifests by REST, and the same scheduler
configuration with `compatibility: volcano` (decision 0010). PodGroups of external pods are created for both.

Not compared: `colocation`, which Volcano 1.14 does not have; pods of equal age whose names have no numbers, which it
orders by random uids; and victims that a budget protects although a later tier names them: Volcano deletes them, while
Hekla asks the cluster before each eviction.
"""

import json
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from rest_framework.test import APIClient
from tests.controller import volcano_groups, volcano_loads, volcano_scenarios, volcano_victims
from tests.controller.conftest import World, describe
from tests.controller.external_pods import external_namespace
from tests.controller.volcano_scenarios import Group, Scenario
from tests.controller.volcano_stage import Placement, Stage
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.volcano.processes import Volcano

from hekla.apps.accounts import services as accounts
from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import NodeUsageRow
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.priorities import services as priorities
from hekla.apps.queues import services as queues
from hekla.controller.backends import backend_of
from hekla.controller.controllers import controllers
from hekla.domain.phases import FINAL_POD_PHASES, JobPhase
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock

__all__ = ["external_namespace"]
_JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/{}/jobs"
_PODS = "/api/v1/namespaces/{}/pods"
_SETTLED_SECONDS = 4.0
"""Volcano decides five times a second; what did not change for so long is its decision."""
_NOTICED_SECONDS = 15.0
_HYPERNODES_SECONDS = 3.0
"""Volcano begins to decide before it knows the HyperNodes; until then, all nodes are near each other for it."""
_USUAL = ("CPUs of one cell",)
"""Those that run by default. `test_recorded_volcano.py` compares samples of all with what Volcano decided."""
SCENARIOS = {
    name: scenario
    for module in (volcano_scenarios, volcano_loads, volcano_victims, volcano_groups)
    for name, scenario in module.SCENARIOS.items()
}


@pytest.fixture
def stage_of(
    request: pytest.FixtureRequest, volcano: Volcano, topology_kinds: None, volcano_namespace: str
) -> Iterator[Callable[[Scenario], Stage]]:
    stages: list[Stage] = []

    def build(scenario: Scenario) -> Stage:
        is_external = scenario.has_external_pods
        namespace = request.getfixturevalue("external_namespace") if is_external else volcano_namespace
        stages.append(Stage(volcano.plane, namespace, scenario))
        return stages[-1]

    yield build
    for stage in stages:
        stage.remove()


def settled(read: Callable[[], Placement], act: Callable[[], None]) -> Placement:
    """What is read when it has not changed for a while."""
    last, since = read(), time.monotonic()
    while time.monotonic() - since < _SETTLED_SECONDS:
        act()
        if (found := read()) != last:
            last, since = found, time.monotonic()
    return last


def decided_by_volcano(volcano: Volcano, stage: Stage) -> list[Placement]:
    """The placement after each wave. The jobs are deleted afterwards."""
    plane, jobs, pods = volcano.plane, _JOBS.format(stage.namespace), _PODS.format(stage.namespace)

    def read() -> Placement:
        found = plane.request("GET", pods)["items"]
        return stage.placement({one["metadata"]["name"]: one["spec"].get("nodeName", "") for one in found})

    volcano.schedule_by(stage.policy_of_volcano(), stage.labels)
    stage.wait_until_measured()
    if stage.scenario.racks:
        time.sleep(_HYPERNODES_SECONDS)
    placements = []
    for wave in stage.scenario.waves:
        for one in wave:
            if isinstance(one, Group):
                stage.add_group(one, "volcano")
            else:
                plane.request("POST", jobs, stage.confined(one))
        _wait_for_volcano(plane, jobs, pods)
        placements.append(settled(read, lambda: time.sleep(0.2)))
    for one in plane.request("GET", jobs)["items"]:
        plane.request("DELETE", f"{jobs}/{one['metadata']['name']}")
    stage.remove_groups()
    plane.wait_until(lambda: not plane.request("GET", pods)["items"] and stage.has_released_claims(), 90.0)
    return placements


def _wait_for_volcano(plane: ControlPlane, jobs: str, pods: str) -> None:
    """Wait until every job has pods and each of them a node or a condition: then Volcano has looked at all of them.

    A job that is not admitted gets no pods, so the wait ends in any case.
    """
    give_up_at = time.monotonic() + _NOTICED_SECONDS
    while time.monotonic() < give_up_at:
        found = plane.request("GET", pods)["items"]
        wanted = {one["metadata"]["name"] for one in plane.request("GET", jobs)["items"]}
        decided = all(one["spec"].get("nodeName") or one["status"].get("conditions") for one in found)
        if decided and wanted <= {one["metadata"].get("labels", {}).get("volcano.sh/job-name") for one in found}:
            return
        time.sleep(0.2)


def decided_by_hekla(world: World, stage: Stage) -> list[Placement]:
    """The placement after each wave. The jobs are ended afterwards."""
    token = accounts.create_token(world.alice, name="test", lifetime=timedelta(hours=1), now=clock.now())
    client = APIClient(HTTP_AUTHORIZATION=f"Bearer {token}")
    text = f"{stage.scenario.policy}compatibility: volcano\n"
    clusters.set_policy(world.cluster, text=text, note="", by=world.alice, actor=PLATFORM, now=clock.now())
    for name, value in stage.scenario.priorities.items():
        priorities.create(name=name, values={"value": value}, actor=PLATFORM, now=clock.now())
    for name, fields in stage.scenario.queues.items():
        queues.create(cluster=world.cluster, name=name, values=fields, actor=PLATFORM, now=clock.now())
    if stage.metrics is not None:
        world.reconcile_until(lambda: NodeUsageRow.objects.count() == len(stage.names))

    def read() -> Placement:
        found = Pod.objects.exclude(node="").exclude(phase__in=FINAL_POD_PHASES).select_related("job")
        return stage.placement({f"{pod.job.name}-{pod.task}-{pod.index}": pod.node for pod in found})

    def act() -> None:
        backend_of(world.cluster).wait(0.2)
        controllers.reconcile(world.cluster)

    placements = []
    for wave in stage.scenario.waves:
        for one in wave:
            if isinstance(one, Group):
                stage.add_group(one, "hekla")
                continue
            answer = client.post("/api/v1/jobs", yaml.safe_dump(stage.confined(one)), content_type="application/yaml")
            assert answer.status_code == 201, answer.content
        placements.append(settled(read, act))
    stage.remove_groups()
    for job in Job.objects.filter(external=None):
        assert job.phase in (JobPhase.PENDING, JobPhase.RUNNING), describe()
        services.command(job, LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())
    controllers.reconcile(world.cluster)
    return placements


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in _USUAL else pytest.mark.thorough) for name in SCENARIOS]
)
def test_both_place_the_jobs_alike(
    name: str,
    volcano: Volcano,
    volcano_namespace: str,
    claims_namespace: str,
    volumes_namespace: str,
    stage_of: Callable[[Scenario], Stage],
    transactional_db: None,
    settings: Any,
    tmp_path: Path,
) -> None:
    stage = stage_of(SCENARIOS[name])
    by_volcano = decided_by_volcano(volcano, stage)
    if stage.scenario.volume_claims:
        stage.add_volumes()
    settings.HEKLA_HOME = tmp_path
    controllers.reset()
    (tmp_path / "kubeconfigs").mkdir()
    kubeconfig = volcano.plane.kubeconfig(volcano.plane.user_token)
    (tmp_path / "kubeconfigs" / "test").write_text(json.dumps(kubeconfig))
    config = {
        "kubeconfig": "test",
        "namespace": volcano_namespace,
        "node_labels": stage.labels,
        "host_ports": ["8080"],
        "devices": True,
        "storage": True,
        "claims": [*stage.scenario.volume_claims, "none"],
        "resource_claims": [*stage.scenario.claims, *stage.scenario.templates],
        **({"prometheus": {"address": stage.metrics.url}} if stage.metrics else {}),
    }
    if stage.scenario.has_external_pods:
        config["external_pods"] = {"namespaces": {stage.namespace: "lab"}, "queue": "default", "owner": "alice"}
    world = World.found("kubernetes", config)
    try:
        assert decided_by_hekla(world, stage) == by_volcano
    finally:
        backend_of(world.cluster).close()
        controllers.reset()
    is_placed = any(pods for placement in by_volcano for _kind, pods in placement)
    assert is_placed == (name not in volcano_scenarios.NOTHING_FITS)
