"""Scenarios of Kubernetes objects: laid as rows, the controller decides them as the engine decides the objects."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support import recorded_cycles, recorded_rows

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.tenancy import services as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.controller.controllers import controllers
from hekla.engine import scenario
from hekla.lib import clock

Document = dict[str, Any]
TIERS = [
    {"plugins": [{"name": "priority"}, {"name": "gang"}, {"name": "conformance"}]},
    {
        "plugins": [
            {"name": "drf"},
            {"name": "predicates"},
            {"name": "proportion"},
            {"name": "nodeorder"},
            {"name": "binpack"},
        ]
    },
]


@pytest.fixture
def owner(transactional_db: None, settings: Any, tmp_path: Path) -> Iterator[tuple[User, Tenant]]:
    settings.HEKLA_HOME = tmp_path
    controllers.reset()
    now = clock.now()
    alice = accounts.create_user(username="alice", password=None, actor=PLATFORM, now=now)
    yield alice, tenancy.create(slug="lab", name="Lab", actor=PLATFORM, now=now)
    controllers.reset()


def node(name: str, cpu: int, **spec: Any) -> Document:
    amounts = {"cpu": str(cpu), "memory": "32Gi", "pods": "20"}
    return {"metadata": {"name": name, "labels": {"zone": name[0]}}, "spec": spec, "status": {"allocatable": amounts}}


def group(name: str, least: int, *, queue: str = "default", phase: str = "Pending", priority: str = "") -> Document:
    return {
        "metadata": {"name": name, "namespace": "lab", "creationTimestamp": "2024-01-01T00:00:00Z"},
        "spec": {"minMember": least, "queue": queue, **({"priorityClassName": priority} if priority else {})},
        "status": {"phase": phase},
    }


def pods(job: str, count: int, cpu: int, on: str = "", **spec: Any) -> list[Document]:
    container = {"name": "main", "resources": {"requests": {"cpu": str(cpu), "memory": "1Gi"}}}
    return [
        {
            "metadata": {
                "name": f"{job}-{number}",
                "namespace": "lab",
                "annotations": {"scheduling.k8s.io/group-name": job},
            },
            "spec": {"containers": [container], **({"nodeName": on} if on else {}), **spec},
            "status": {"phase": "Running" if on else "Pending"},
        }
        for number in range(count)
    ]


def document(actions: str, *jobs: tuple[Document, list[Document]], queues: dict[str, int] | None = None) -> Document:
    """A scenario with three nodes, one of them tainted."""
    tainted = [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]
    weights = queues or {"default": 1}
    return {
        "id": "written here",
        "conf": {"tiers": TIERS},
        "actions": actions.split(),
        "cluster": {
            "nodes": [node("a1", 4), node("b1", 4), node("c1", 8, taints=tainted)],
            "queues": [{"metadata": {"name": name}, "spec": {"weight": weight}} for name, weight in weights.items()],
            "priorityClasses": [{"metadata": {"name": "high"}, "value": 1000}],
            "podGroups": [one for one, _ in jobs],
            "pods": [pod for _, own in jobs for pod in own],
        },
    }


TOLERATES = [{"key": "gpu", "operator": "Exists"}]
IN_ZONE_B = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}]
        }
    }
}
WITH_PORT = {
    "name": "main",
    "resources": {"requests": {"cpu": "1"}},
    "ports": [{"containerPort": 80, "hostPort": 8080}],
}
SCENARIOS = {
    "gangs": document(
        "enqueue allocate backfill",
        (group("fits", 3), pods("fits", 3, 2)),
        (group("waits", 4), pods("waits", 4, 2)),
        (group("tolerates", 4), pods("tolerates", 4, 2, tolerations=TOLERATES)),
    ),
    "placement": document(
        "enqueue allocate",
        (group("near", 2), pods("near", 2, 1, affinity=IN_ZONE_B)),
        (group("chosen", 1), pods("chosen", 1, 1, nodeSelector={"zone": "a"})),
        (group("nowhere", 1), pods("nowhere", 1, 1, nodeSelector={"zone": "z"})),
    ),
    "ports": document(
        "enqueue allocate",
        (group("uses", 1, phase="Running"), pods("uses", 1, 1, "a1", containers=[WITH_PORT])),
        (group("same", 2), pods("same", 2, 1, containers=[WITH_PORT])),
        (group("one", 1), pods("one", 1, 1, containers=[WITH_PORT])),
    ),
    "preempt": document(
        "enqueue allocate preempt",
        (group("low", 1, phase="Running"), pods("low", 4, 1, "a1")),
        (group("other", 1, phase="Running"), pods("other", 4, 1, "b1")),
        (group("urgent", 2, phase="Inqueue", priority="high"), pods("urgent", 2, 2)),
    ),
    "reclaim": document(
        "enqueue allocate reclaim",
        (group("borrows", 1, queue="rich", phase="Running"), pods("borrows", 4, 1, "a1")),
        (group("more", 1, queue="rich", phase="Running"), pods("more", 4, 1, "b1")),
        (group("claims", 1, queue="poor", phase="Inqueue"), pods("claims", 2, 1)),
        queues={"rich": 1, "poor": 1},
    ),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_controller_decides_rows_as_the_engine_decides_the_objects(
    owner: tuple[User, Tenant], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    user, tenant = owner
    (expected,) = scenario.play(scenario.read(SCENARIOS[name]))
    laid = recorded_rows.lay(SCENARIOS[name], owner=user, tenant=tenant)
    (found,) = recorded_cycles.play(laid, recorded_rows.policy_text(SCENARIOS[name]), 1, monkeypatch)
    phases = {job: {"phase": one["phase"]} for job, one in expected["podGroups"].items()}
    assert found == {**expected, "podGroups": phases}
    assert found["binds"] or found["evicted"], "something is decided"
