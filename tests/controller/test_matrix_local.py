"""Ends of real processes, and the reactions of policies and people: a job of its own for each pair, all at once.

The expected results are in tables (`local_cells.py`). The cells for all events and phases run on a simulated cluster
(`test_matrix.py`, `test_matrix_late.py`).
"""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from tests.controller.conftest import World
from tests.controller.local_cells import CELLS, PODS, RUNS, STOPPED, Cell, State
from tests.support import auditor

from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.job_history import endings, failures, messages
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.backends.local.pod_folder import PodFolder
from hekla.controller.backends import backend_of
from hekla.controller.controllers import controllers
from hekla.controller.observations import key_of
from hekla.domain.policies import PARTIAL_ACTIONS, LifecycleAction
from hekla.lib import clock

SECONDS = 120.0
ACTIVE = ("pending", "running", "restarting", "aborting", "completing", "terminating")


class Matrix:
    """The jobs of all cells, and the event of each once all its pods run."""

    def __init__(self, world: World, folder: Path) -> None:
        self.world, self.gates = world, folder
        self.jobs = {cell: self._submit(cell) for cell in CELLS}
        self.triggered: dict[Cell, list[int]] = {cell: [] for cell in CELLS}
        self.pods: dict[Cell, list[Pod]] = {}

    def _submit(self, cell: Cell) -> Job:
        job = services.submit(
            spec=cell.spec(self.gates), tenant=self.world.tenant, user=self.world.alice, now=clock.now()
        )
        for name in cell.gates:
            gate = self.gates / f"{job.uid.hex}:{name}"
            os.mkfifo(gate)
            gate.chmod(0o666)
        return job

    def states(self) -> dict[Cell, State]:
        """The state of each job."""
        rows = Job.objects.in_bulk([job.pk for job in self.jobs.values()])
        self.jobs = {cell: rows[job.pk] for cell, job in self.jobs.items()}
        found: dict[int, list[Pod]] = {job.pk: [] for job in self.jobs.values()}
        for pod in Pod.objects.select_related("job").order_by("task", "index", "attempt"):
            found[pod.job_id].append(pod)
        self.pods = {cell: found[job.pk] for cell, job in self.jobs.items()}
        return {
            cell: (job.phase, job.version, job.retry_count, self._attempts(cell)) for cell, job in self.jobs.items()
        }

    def _attempts(self, cell: Cell) -> dict[str, list[str]]:
        attempts: dict[str, list[str]] = {}
        for pod in self.pods[cell]:
            end = [str(pod.exit_code), pod.reason] if pod.is_final else []
            attempts.setdefault(str(pod), []).append(" ".join([pod.phase, *end]).strip())
        return attempts

    def run(self) -> dict[Cell, State]:
        """Reconciles until every job has its expected state, or time is up; returns the states a little later."""
        expected, give_up_at = {cell: cell.expected() for cell in CELLS}, time.monotonic() + SECONDS
        while (states := self.states()) != expected and time.monotonic() < give_up_at:
            for cell, state in states.items():
                self._trigger_when_ready(cell, state)
            backend_of(self.world.cluster).wait(0.2)
            controllers.reconcile(self.world.cluster)
        for _ in range(3):
            controllers.reconcile(self.world.cluster)
        return self.states()

    def _trigger_when_ready(self, cell: Cell, state: State) -> None:
        """Triggers the event of the cell, as often as it needs, whenever all pods run; resumes an aborted job."""
        if state[0] == "aborted":
            self._command(cell, LifecycleAction.RESUME_JOB)
        all_run = state[0] == "running" and [attempts[-1] for attempts in state[3].values()] == [RUNS] * len(PODS)
        pods, before = [pod for pod in self.pods[cell] if not pod.is_final], self.triggered[cell]
        # Until the controller has seen the last end, the pod that ended still counts as running.
        if all_run and len(before) < cell.times and pods[-1].pk not in before:
            before.append(pods[-1].pk)
            self._trigger(cell, pods)

    def _trigger(self, cell: Cell, pods: list[Pod]) -> None:
        for pod in pods:
            gate = self.gates / f"{pod.job.uid.hex}:{pod}-{pod.attempt}"
            if gate.exists():
                _open(gate)
        if cell.cause == "person":
            self._command(cell, cell.action)
        if cell.ending == "killed":
            os.kill(self._folder(pods[-1]).status()["pid"], signal.SIGKILL)
        elif cell.ending in ("lost", "orphaned"):
            os.kill(self._folder(pods[-1]).holder(), signal.SIGKILL)

    def _command(self, cell: Cell, action: LifecycleAction) -> None:
        part: dict[str, Any] = {"task": "work"} if action in PARTIAL_ACTIONS else {}
        part |= {"index": 1} if action is LifecycleAction.RESTART_POD else {}
        services.command(self.jobs[cell], action, **part, user=self.world.alice, now=clock.now())

    def _folder(self, pod: Pod) -> PodFolder:
        key = key_of(pod)
        (path,) = Path(settings.HEKLA_HOME).glob(f"local/*/pods/{key.job}/{key.name}")
        return PodFolder(str(path))

    def log(self, cell: Cell) -> str:
        """The log of the first attempt of `work-1`."""
        (pod, *_) = [pod for pod in self.pods[cell] if str(pod) == "work-1"]
        return backend_of(self.world.cluster).logs(key_of(pod), offset=0, limit=65536).data.decode()

    def phases(self, cell: Cell) -> list[str]:
        """The phases that the job entered after it first ran."""
        phases = [event.payload["new"] for event in self._steps(cell)]
        return phases[phases.index("running") :]

    def messages(self, cell: Cell) -> list[str]:
        """All messages of the job, the current one last."""
        messages_so_far = [
            messages.render_message(event.payload["message_facts"], event.payload["message"])
            for event in self._steps(cell)
        ]
        return [*messages_so_far, messages.of_job(self.jobs[cell])]

    def _steps(self, cell: Cell) -> list[LoggedEvent]:
        subject = f"job:{self.jobs[cell].uid}"
        return list(LoggedEvent.objects.filter(subject=subject, kind="JobPhaseChanged").order_by("pk"))

    def end_all(self) -> None:
        """Terminates the jobs that are not over."""
        for cell, job in self.jobs.items():
            if not job.is_final:
                self._command(cell, LifecycleAction.TERMINATE_JOB)
        self.world.reconcile_until(lambda: all(state[0] not in ACTIVE for state in self.states().values()))
        self.world.reconcile_until(lambda: all(pod.is_final for pods in self.pods.values() for pod in pods))


def _open(gate: Path) -> None:
    """Opens the gate as soon as the pod waits there."""
    give_up_at = time.monotonic() + SECONDS
    while time.monotonic() < give_up_at:
        with contextlib.suppress(OSError):
            pipe = os.open(gate, os.O_WRONLY | os.O_NONBLOCK)
            os.write(pipe, b"\n")
            os.close(pipe)
            return
        time.sleep(0.01)
    raise AssertionError(gate)


@pytest.fixture
def matrix(transactional_db: None, settings, tmp_path: Path) -> Iterator[Matrix]:
    """Room for every job on this machine."""
    settings.HEKLA_HOME, settings.CHECK_ENGINE = tmp_path / "home", False
    controllers.reset()
    gates = tmp_path / "gates"
    gates.mkdir()
    size = {"cpu": "2000", "memory": "8Gi", "pods": "2000"}
    matrix = Matrix(World.found("local", {"allocatable": size, "writable_folders": [str(gates)]}), gates)
    yield matrix
    for job in matrix.jobs.values():
        backend_of(matrix.world.cluster).remove(job.uid.hex)
    controllers.reset()


def test_each_end_of_a_process_leads_to_the_expected_state_and_message(matrix: Matrix) -> None:
    states = matrix.run()
    assert {cell.name: state for cell, state in states.items()} == {cell.name: cell.expected() for cell in CELLS}
    for cell in CELLS:
        assert matrix.phases(cell) == ["running", *cell.phases()], cell.name
        assert cell.message_of_job() in "\n".join(matrix.messages(cell)), cell.name
        _check_pods(cell, matrix.pods[cell])
        _check_log(cell, matrix.log(cell))
    matrix.end_all()
    auditor.audit_everything()


def _check_pods(cell: Cell, pods: list[Pod]) -> None:
    """A pod that ended by itself has an explanation; a stopped one needs none."""
    for pod in pods:
        why, state = failures.explain(pod), f"{pod.phase} {pod.exit_code} {pod.reason}"
        if pod.is_final and state != STOPPED and cell.how.exit_message:
            assert endings.exit_of(pod) == cell.how.exit_message, cell.name
        assert (why is not None) == bool(pod.phase in ("failed", "lost") and pod.reason != "Stopped"), cell.name
        assert why is None or cell.how.cause in why.cause, cell.name


def _check_log(cell: Cell, log: str) -> None:
    """Checks the log of the pod that ended."""
    failure = failures.explain_log(log)
    assert (failure.cause if failure else "") == (
        "The program could not allocate memory." * (cell.ending == "outgrows")
    )
    assert ("heard" in log) == (cell.ending == "deaf"), cell.name
