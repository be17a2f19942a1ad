"""The call path of one pod, as listed in `controller/README.md`: a real job is traced from submission to end.

The call stack is recorded at each step: a change of a row of the job or a pod, an object that one package passes to the
next (`PASSED_ON`), or a call of the backend. Every file with a function on the stack is part of the path, unless
`SHARED` gives a reason to leave it out.
"""

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from tests.controller.conftest import World

from hekla.apps.jobs.models import Job, Pod
from hekla.apps.jobs.services.decisions import JobDecision
from hekla.apps.jobs.services.observations import Sighting
from hekla.backends.base import PodOrder
from hekla.controller import tasks
from hekla.controller.backends import backend_of
from hekla.controller.cluster_controller import ClusterController
from hekla.engine.decisions import Bind
from hekla.scheduling.snapshot import Snapshot

PACKAGE = Path(__file__).parents[2] / "platform" / "hekla"
README = PACKAGE / "controller" / "README.md"
LISTED = re.compile(r"^\d+\. `([\w/<>]+\.py)`", re.MULTILINE)
MOST_FILES = 15
PHASES = re.compile(r"^ *(?:# )?(\d)\. ", re.MULTILINE)

CHANGES = re.compile(rf'^(INSERT INTO|UPDATE) "({Job._meta.db_table}|{Pod._meta.db_table})"')
PASSED_ON = (Snapshot, Bind, JobDecision, PodOrder, Sighting)
BACKEND_CALLS = ("observe", "start_many", "forget")
SHARED = {
    "domain/": "types and pure rules, which have a README of their own",
    "lib/": "helpers that could belong to another project",
    "pages/": "middleware of every request",
    "api/views.py": "the base of every REST view",
    "project/celery.py": "runs every task, and logs the loss of the database",
    "apps/event_log/": "opens the transaction of every change",
    "apps/rows.py": "saves many rows in one statement",
    "backends/base.py": "the contract of backends",
    "backends/sequential.py": "a loop for backends that start pods one by one",
    "controller/controllers.py": "finds the controller of a cluster",
    "scheduling/job_faults.py": "keeps the fault of a job to that job",
    "controller/lease_context.py": "renews the lease before a write",
    "controller/metrics.py": "measures a cycle",
    "engine/session.py": "what every action and plugin works on: the engine's README",
    "engine/statement.py": "undoes a gang that does not fit: the engine's README",
}


class CallPath:
    """Files in the order of their first appearance."""

    def __init__(self) -> None:
        self.files: list[str] = []

    def step(self, *further: str) -> None:
        """Records the files on the call stack, the outermost first, then these files."""
        for name in (*reversed(list(_files_of(sys._getframe(1)))), *further):
            path = Path(name)
            if path.is_relative_to(PACKAGE) and (file := path.relative_to(PACKAGE).as_posix()) not in self.files:
                self.files.append(file)

    def on_query(self, execute: Callable[..., Any], sql: str, *arguments: Any) -> Any:
        if CHANGES.match(sql):
            self.step()
        return execute(sql, *arguments)

    def after(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wraps a function so that each call is a step, except an observation of no pods."""

        def call(*args: Any, **kwargs: Any) -> Any:
            found = function(*args, **kwargs)
            if getattr(found, "pods", True):
                self.step(function.__code__.co_filename)
            return found

        return call


def _files_of(frame: FrameType | None) -> Iterator[str]:
    while frame is not None:
        yield frame.f_code.co_filename
        frame = frame.f_back


@contextmanager
def traced(kind: type, monkeypatch: pytest.MonkeyPatch) -> Iterator[CallPath]:
    """The call path of the block on a backend of this class."""
    call_path = CallPath()
    with monkeypatch.context() as patch, connection.execute_wrapper(call_path.on_query):
        for handed in PASSED_ON:
            if issubclass(handed, tuple):
                patch.setattr(handed, "__new__", staticmethod(call_path.after(handed.__new__)))
            else:
                patch.setattr(handed, "__init__", call_path.after(handed.__init__))
        for name in BACKEND_CALLS:
            patch.setattr(kind, name, call_path.after(getattr(kind, name)))
        yield call_path


def listed(kind: str) -> list[str]:
    """The files that the README lists; `<kind>` is replaced by the backend's."""
    return [path.replace("<kind>", kind) for path in LISTED.findall(README.read_text())]


def is_shared(file: str) -> bool:
    return any(file.startswith(prefix) for prefix in SHARED)


@pytest.mark.parametrize("world", ["local", "simulated"], indirect=True)
def test_readme_lists_the_call_path_of_a_pod(world: World, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    client.force_login(world.alice, backend="django.contrib.auth.backends.ModelBackend")
    tasks.turn(world.cluster.pk)  # creates the nodes
    backend = backend_of(world.cluster)
    environment = {"HEKLA_SIM_SECONDS": "0"}
    task = {"name": "main", "command": ["true"], "env": environment, "resources": {"cpu": "1"}}
    with traced(type(backend), monkeypatch) as call_path:
        answer = client.post("/api/v1/jobs", {"name": "one", "tasks": [task]}, content_type="application/json")
        assert answer.status_code == 201, answer.content
        for _ in range(100):
            tasks.turn(world.cluster.pk)
            if Job.objects.get().phase == "completed":
                break
            backend.wait(0.5)
    assert Pod.objects.get().phase == "succeeded"
    assert [file for file in call_path.files if not is_shared(file)] == listed(world.cluster.kind)


def test_readme_list_is_short_and_its_files_exist() -> None:
    files = listed("local")
    assert 0 < len(files) <= MOST_FILES
    assert [file for file in files if not (PACKAGE / file).is_file() or is_shared(file)] == []


def test_readme_has_the_phases_of_a_reconciliation() -> None:
    phases = README.read_text().partition("## One reconciliation")[2]
    assert PHASES.findall(phases) == PHASES.findall(inspect.getsource(ClusterController._reconcile))
