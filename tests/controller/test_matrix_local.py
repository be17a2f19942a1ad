"""How real processes end, and what policies and people make of it: each pair by a job of its own, all at once.

What comes of it stands in tables (`local_cells.py`). The cells for all events and phases are run on a simulated cluster
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
AT_WORK = ("pending", "running", "restarting", "aborting", "completing", "terminating")


class Matrix:
    """The jobs of all cells, and what is done to each when all its pods run."""

    def __init__(self, world: World, folder: Path) -> None:
        self.world, self.gates = world, folder
        self.jobs = {cell: self._submit(cell) for cell in CELLS}
        self.done: dict[Cell, int] = dict.fromkeys(CELLS, 0)
        self.pods: dict[Cell, list[Pod]] = {}

    def _submit(self, cell: Cell) -> Job:
        job = services.submit(
            spec=cell.spec(self.gates), tenant=self.world.tenant, user=self.world.alice, now=clock.now()
        )
        for name in cell.gates:
            os.mkfifo(self.gates / f"{job.uid.hex}:{name}")
        return job

    def states(self) -> dict[Cell, State]:
        """Where each job stands."""
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
        told: dict[str, list[str]] = {}
        for pod in self.pods[cell]:
            end = [str(pod.exit_code), pod.reason] if pod.is_final else []
            told.setdefault(str(pod), []).append(" ".join([pod.phase, *end]).strip())
        return told

    def run(self) -> dict[Cell, State]:
        """Turn until every job is where it should be, or time is up; answers where they are a little later."""
        wanted, give_up_at = {cell: cell.wanted() for cell in CELLS}, time.monotonic() + SECONDS
        while (states := self.states()) != wanted and time.monotonic() < give_up_at:
            for cell, state in states.items():
                self._let_happen(cell, state)
            backend_of(self.world.cluster).wait(0.2)
            controllers.reconcile(self.world.cluster)
        for _ in range(3):
            controllers.reconcile(self.world.cluster)
        return self.states()

    def _let_happen(self, cell: Cell, state: State) -> None:
        """What the cell is about, as often as it is to happen, when all pods run; and the end of an abort."""
        if state[0] == "aborted":
            self._command(cell, LifecycleAction.RESUME_JOB)
        all_run = state[0] == "running" and [attempts[-1] for attempts in state[3].values()] == [RUNS] * len(PODS)
        if all_run and self.done[cell] < cell.times:
            self.done[cell] += 1
            self._happen(cell, [pod for pod in self.pods[cell] if not pod.is_final])

    def _happen(self, cell: Cell, pods: list[Pod]) -> None:
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
        """What the first attempt that ended in the way of the cell had written."""
        (pod, *_) = [pod for pod in self.pods[cell] if str(pod) == "work-1"]
        return backend_of(self.world.cluster).logs(key_of(pod), offset=0, limit=65536).data.decode()

    def phases(self, cell: Cell) -> list[str]:
        """What the job entered since it ran for the first time."""
        phases = [event.payload["new"] for event in self._steps(cell)]
        return phases[phases.index("running") :]

    def words(self, cell: Cell) -> list[str]:
        """What was said of the job, and is said of it now."""
        said = [
            messages.render_message(event.payload["message_facts"], event.payload["message"])
            for event in self._steps(cell)
        ]
        return [*said, messages.of_job(self.jobs[cell])]

    def _steps(self, cell: Cell) -> list[LoggedEvent]:
        subject = f"job:{self.jobs[cell].uid}"
        return list(LoggedEvent.objects.filter(subject=subject, kind="JobPhaseChanged").order_by("pk"))

    def end_all(self) -> None:
        """Whatever still runs."""
        for cell, job in self.jobs.items():
            if not job.is_final:
                self._command(cell, LifecycleAction.TERMINATE_JOB)
        self.world.turn_until(lambda: all(state[0] not in AT_WORK for state in self.states().values()))
        self.world.turn_until(lambda: all(pod.is_final for pods in self.pods.values() for pod in pods))


def _open(gate: Path) -> None:
    """Let the pod go on, as soon as it waits there."""
    give_up_at = time.monotonic() + SECONDS
    while time.monotonic() < give_up_at:
        with contextlib.suppress(OSError):
            way = os.open(gate, os.O_WRONLY | os.O_NONBLOCK)
            os.write(way, b"\n")
            os.close(way)
            return
        time.sleep(0.01)
    raise AssertionError(gate)


@pytest.fixture
def matrix(transactional_db: None, settings, tmp_path: Path) -> Iterator[Matrix]:
    """Room for everybody on this machine."""
    settings.HEKLA_HOME, settings.CHECK_ENGINE = tmp_path / "home", False
    controllers.reset()
    gates = tmp_path / "gates"
    gates.mkdir()
    size = {"cpu": "2000", "memory": "8Gi", "pods": "2000"}
    matrix = Matrix(World.found("local", {"allocatable": size}), gates)
    yield matrix
    for job in matrix.jobs.values():
        backend_of(matrix.world.cluster).remove(job.uid.hex)
    controllers.reset()


def test_however_a_process_ends_its_job_goes_where_it_should_and_says_why(matrix: Matrix) -> None:
    states = matrix.run()
    assert {cell.name: state for cell, state in states.items()} == {cell.name: cell.wanted() for cell in CELLS}
    for cell in CELLS:
        assert matrix.phases(cell) == ["running", *cell.phases()], cell.name
        assert cell.words_of_job() in "\n".join(matrix.words(cell)), cell.name
        _read_pods(cell, matrix.pods[cell])
        _read_log(cell, matrix.log(cell))
    matrix.end_all()
    auditor.audit_everything()


def _read_pods(cell: Cell, pods: list[Pod]) -> None:
    """Whoever ended by itself has an explanation, and who was asked to end needs none."""
    for pod in pods:
        why, state = failures.explain(pod), f"{pod.phase} {pod.exit_code} {pod.reason}"
        if pod.is_final and state != STOPPED and cell.how.exit_words:
            assert endings.exit_of(pod) == cell.how.exit_words, cell.name
        assert (why is not None) == bool(pod.phase in ("failed", "lost") and pod.reason != "Stopped"), cell.name
        assert why is None or cell.how.cause in why.cause, cell.name


def _read_log(cell: Cell, log: str) -> None:
    """The log of the pod that ended."""
    seen = failures.explain_log(log)
    assert (seen.cause if seen else "") == ("The program could not allocate memory." * (cell.ending == "outgrows"))
    assert ("heard" in log) == (cell.ending == "deaf"), cell.name
