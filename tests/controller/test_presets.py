"""Presets of the form run unchanged: a job of each kind and each framework completes with the right environment.

The pods are simulated, so no framework has to be installed. The test checks that the job is admitted, that all of its
pods are placed together and run, and that each role has the addresses of the others.
"""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.test_submission import minimal_form, post_data
from tests.controller.conftest import World, describe

from hekla.apps.jobs.models import Job
from hekla.backends.base import PodOrder
from hekla.backends.simulated.backend import SimulatedBackend
from hekla.controller.controllers import controllers
from hekla.domain.phases import FINAL_JOB_PHASES
from hekla.pages.submit.presets import INCLUDED

_MEETS = {"MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE"}
_DMLC = {"DMLC_ROLE", "DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT", "DMLC_NUM_SERVER", "DMLC_NUM_WORKER"}
_JAX = {"COORDINATOR_ADDRESS", "COORDINATOR_PORT", "NUM_PROCESSES", "PROCESS_ID"}
_EACH = {"VC_TASK_INDEX"}
# By preset: variables that the pods of each role have, at least.
PRESET_VARIABLES: dict[str, dict[str, set[str]]] = {
    "single": {"main": _EACH},
    "distributed": {"worker": {"JOB_COMPLETION_INDEX", "VC_WORKER_HOSTS"}},
    "debugging": {"main": _EACH},
    "sweep": {"main": _EACH},
    "tensorflow": {"ps": {"TF_CONFIG"}, "worker": {"TF_CONFIG"}},
    "pytorch": {"master": _MEETS, "worker": _MEETS},
    "torchrun": {"worker": {"PET_RDZV_ENDPOINT", "PET_NNODES"}},
    "mpi": {"master": {"MPI_HOST"}, "worker": _EACH},
    "mxnet": {"scheduler": _DMLC, "server": _DMLC, "worker": _DMLC},
    "ray": {"head": {"RAY_ADDRESS"}, "worker": {"RAY_ADDRESS"}, "driver": {"RAY_ADDRESS", "RAY_API_SERVER_ADDRESS"}},
    "jax": {"worker": _JAX},
    "horovod": {"master": {"MPI_HOST"}, "worker": _EACH},
    "xgboost": {"master": _MEETS | {"WORKER_ADDRS"}, "worker": _MEETS | {"WORKER_PORT"}},
    "notebook": {"main": _EACH},
    "tensorboard": {"main": _EACH},
}
# Frameworks that are chosen in the form, with the roles that they know.
FRAMEWORK_VARIABLES: dict[str, dict[str, set[str]]] = {
    "mindspore": {"scheduler": {"MS_ROLE"}, "worker": {"MS_ROLE"}},
    "paddle": {"worker": {"PADDLE_TRAINER_ID"}},
    "hcclrank": {"worker": {"RANK"}},
    "indexed": {"worker": {"JOB_COMPLETION_INDEX"}},
    "openpai": {"worker": {"PAI_HOST_IP_worker_0"}},
}


@pytest.fixture
def roomy(transactional_db: None, settings: Any, tmp_path: Any) -> Iterator[World]:
    """Room for all of them, and pods that end soon."""
    settings.HEKLA_HOME = tmp_path
    controllers.reset()
    nodes = [{"name": "n", "allocatable": {"cpu": "64", "memory": "64Gi", "pods": "100"}}]
    between = {"min": 1, "max": 2}
    yield World.found("simulated", {"nodes": nodes, "seed": 1, "speed": 10, "run_seconds": between})
    controllers.reset()


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[PodOrder]:
    """The orders that the simulated backend started."""
    orders: list[PodOrder] = []
    start = SimulatedBackend._start

    def record(self: SimulatedBackend, order: PodOrder) -> None:
        orders.append(order)
        start(self, order)

    monkeypatch.setattr(SimulatedBackend, "_start", record)
    return orders


def _submit_preset(client: Client, preset: str) -> None:
    """Submits the form of a preset unchanged, under the name of the preset."""
    page = client.get(reverse("jobs:submit"), {"preset": preset}).context
    sent = post_data(SimpleNamespace(job=page["form"], tasks=page["tasks"], files=page["files"]))
    sweep = {field.html_name: field.value() or "" for field in page["beside"].parameters}
    answer = client.post(reverse("jobs:submit"), {**sent.dict(), **sweep, "name": preset})
    assert answer.status_code == 302, (preset, answer.context["form"].errors)


def _submit_framework(client: Client, framework: str, roles: dict[str, set[str]]) -> None:
    """Submits the form with these roles; `worker` has two replicas, every other role one."""
    sent = minimal_form(name=framework, framework=framework, **{"tasks-TOTAL_FORMS": str(len(roles))})
    for place, role in enumerate(roles):
        count = "2" if role == "worker" else "1"
        sent |= {f"tasks-{place}-{name}": text for name, text in (("name", role), ("replicas", count))}
        sent[f"tasks-{place}-command"] = "python train.py"
    answer = client.post(reverse("jobs:submit"), sent)
    assert answer.status_code == 302, (framework, answer.context["form"].errors, answer.context["tasks"].errors)


def test_every_preset_has_expected_variables() -> None:
    assert set(PRESET_VARIABLES) == {each.name for each in INCLUDED}


def test_each_preset_and_framework_completes_with_its_variables(roomy: World, started: list[PodOrder]) -> None:
    client = Client()
    client.force_login(roomy.alice, backend="django.contrib.auth.backends.ModelBackend")
    for preset in PRESET_VARIABLES:
        _submit_preset(client, preset)
    for framework, roles in FRAMEWORK_VARIABLES.items():
        _submit_framework(client, framework, roles)
    roomy.reconcile_until(lambda: not Job.objects.exclude(phase__in=FINAL_JOB_PHASES).exists())
    assert {job.phase for job in Job.objects.all()} == {"completed"}, describe()
    names = {job.uid.hex: job.name for job in Job.objects.all()}
    lacking = {
        (name, role): expected - set(order.env)
        for name, roles in (PRESET_VARIABLES | FRAMEWORK_VARIABLES).items()
        for role, expected in roles.items()
        for order in _of(started, names, name, role)
        if expected - set(order.env)
    }
    assert lacking == {}
    swept = [order.command[-1] for order in started if names[order.key.job].startswith("sweep-")]
    assert sorted(swept) == [f"print('learning rate', {rate})" for rate in ("0.001", "0.01", "0.1")]


def _of(started: list[PodOrder], names: dict[str, str], name: str, role: str) -> list[PodOrder]:
    """The pods of a role of a job; at least one."""
    jobs = {uid for uid, known in names.items() if known == name or known.startswith(f"{name}-")}
    found = [order for order in started if order.key.job in jobs and order.key.task == role]
    assert found, (name, role)
    return found
