"""How processes end, how policies and people react, and the result: the tables of `test_matrix_local.py`.

Every job has three pods: two of a task, of which the second ends in some way, and one of another task.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from tests.support.examples import EVERY

from hekla.domain.jobspec import JobSpec
from hekla.domain.policies import PARTIAL_ACTIONS, LifecycleAction

SCRIPT = """
test -p "$1/$HEKLA_POD" && trap 'echo heard' TERM && read -r go < "$1/$HEKLA_POD" && eval "$2"
exec sleep 600
"""
"""A pod with a gate waits there, then runs its script. Pods without one run for ever."""
PODS = ("rest-0", "work-0", "work-1")
RUNS, STOPPED = "running", "failed 143 Stopped"
State = tuple[str, int, int, dict[str, list[str]]]
"""Phase, version, restarts, and the attempts of each replica: the phase, and for an end its code and reason."""


@dataclass(frozen=True)
class ProcessEnd:
    """What a process does, or what is done to it if `script` is empty, and how this is reported."""

    script: str
    state: str
    exit_message: str = ""
    cause: str = ""
    job_message: str = ""


ENDINGS = {
    "done": ProcessEnd("exit 0", "succeeded 0"),
    "exits": ProcessEnd("exit 3", "failed 3 Error", "3", "failed with exit code 3", "failed with exit code 3."),
    "crashes": ProcessEnd(
        "ulimit -c 0; exec python -c 'import ctypes; ctypes.string_at(0)'",
        "failed 139 SIGSEGV",
        "139, stopped by SIGSEGV",
        "Segmentation fault",
        "failed with exit code 139.",
    ),
    "outgrows": ProcessEnd(
        "exec python -c 'import resource as r; r.setrlimit(r.RLIMIT_AS, (2**28, 2**28)); bytearray(2**30)'",
        "failed 1 Error",
        "1",
        "failed with exit code 1",
        "failed with exit code 1.",
    ),
    "childkilled": ProcessEnd(
        "sh -c 'kill -KILL $$'; exit $?",
        "failed 137 Error",
        "137, stopped by SIGKILL",
        "was killed (SIGKILL)",
        "failed with exit code 137.",
    ),
    "killed": ProcessEnd(
        "", "failed 137 SIGKILL", "137, stopped by SIGKILL", "was killed (SIGKILL)", "failed with exit code 137."
    ),
    "lost": ProcessEnd("", "lost None ShimDied", "–", "supervising process was killed", "was lost."),
    "deaf": ProcessEnd("while :; do sleep 0.1; done", "failed 137 Stopped", "137, stopped by SIGKILL"),
    "orphaned": ProcessEnd("while :; do sleep 0.1; done", "lost None ShimDied", "–", "supervising process was killed"),
}
"""`deaf` processes ignore the stop; `orphaned` ones lose their shim at that moment."""
FAILURES = ("exits", "crashes", "outgrows", "childkilled", "killed")
RESTARTS = (LifecycleAction.RESTART_JOB, LifecycleAction.RESTART_POD, LifecycleAction.RESTART_TASK)
AFTER = {
    LifecycleAction.ABORT_JOB: ["aborting", "aborted", "restarting", "pending", "running"],
    LifecycleAction.COMPLETE_JOB: ["completing", "completed"],
    LifecycleAction.TERMINATE_JOB: ["terminating", "terminated"],
    LifecycleAction.RESTART_JOB: ["restarting", "pending", "running"],
}
"""The phases that a job enters by each action; an aborted job is resumed."""


@dataclass(frozen=True)
class Cell:
    """A job with a pod that ends in this way, and the action of a policy or a person."""

    ending: str
    cause: str = ""
    action: LifecycleAction | None = None
    times: int = 1

    @property
    def name(self) -> str:
        return f"{self.ending}-{self.cause or 'no'}-{self.action or 'policy'}-{self.times}".lower()

    @property
    def how(self) -> ProcessEnd:
        return ENDINGS[self.ending]

    @property
    def gates(self) -> list[str]:
        """The attempts that wait for the signal to end."""
        names = ["work-0", "work-1"] if self.cause == "TaskCompleted" else ["work-1"]
        attempts = range(1, self.times + 1)
        return [f"{name}-{attempt}" for name in names for attempt in attempts if self.how.script]

    @property
    def is_handled(self) -> bool:
        """Whether the policy handles such an ending."""
        handled = {"done": ("TaskCompleted",), "lost": ("PodEvicted", "TaskFailed")}
        return self.cause in handled.get(self.ending, ("PodFailed", "exit", "person"))

    def spec(self, gates: Path) -> JobSpec:
        task = {
            "command": ["sh", "-c", SCRIPT, "sh", str(gates), self.how.script],
            "resources": {"cpu": "1"},
            "grace_seconds": 1,
        }
        work = {**task, "name": "work", "replicas": 2, "max_retry": 1}
        tasks = [{**work, "policies": list(self._policies())}, {**task, "name": "rest"}]
        return JobSpec.parse({"name": self.name, "tasks": tasks, "max_retry": 1})

    def _policies(self) -> Iterator[dict[str, Any]]:
        if self.cause == "exit":
            yield {"exit_code": int(self.how.state.split()[1]), "action": str(self.action)}
        elif self.cause and self.cause != "person":
            yield {"events": [self.cause], "action": str(self.action)}

    def expected(self) -> State:
        """The final state of the job."""
        action = self.action if self.is_handled else None
        version = 2 if action is LifecycleAction.RESTART_JOB else 1
        restarts = action in RESTARTS and self.cause != "person"
        return ["running", *self.phases()][-1], version, int(restarts), self._attempts(action)

    def _attempts(self, action: LifecycleAction | None) -> dict[str, list[str]]:
        ended = {name[:-2]: [self.how.state] for name in self.gates} | {"work-1": [self.how.state]}
        if action is None:
            replaced = {"work-1": [self.how.state, RUNS]} if self.ending == "lost" else {}
            return {pod: [RUNS] for pod in PODS} | ended | replaced
        spared = {LifecycleAction.RESTART_TASK: {"rest-0"}, LifecycleAction.RESTART_POD: {"rest-0", "work-0"}}.get(
            action, set()
        )
        pods = {pod: ended.get(pod, [RUNS if pod in spared else STOPPED]) for pod in PODS}
        succeeded = set(ended) if self.ending == "done" else set()
        if action not in (LifecycleAction.COMPLETE_JOB, LifecycleAction.TERMINATE_JOB):
            pods |= {pod: [*pods[pod], RUNS] for pod in set(PODS) - spared - succeeded}
        return self._once_more(pods) if self.times > 1 else pods

    def _once_more(self, pods: dict[str, list[str]]) -> dict[str, list[str]]:
        """The pod ends the same way again, and the retries are used up."""
        pods = {pod: [STOPPED if state == RUNS else state for state in states] for pod, states in pods.items()}
        return pods | {"work-1": [self.how.state] * 2}

    def message_of_job(self) -> str:
        """A message that the job must have at some time."""
        if self.ending == "lost" and not self.is_handled:
            return "1 pod is pending. Fewer than 3 are running."
        return f"work-1 {self.how.job_message}" if self.how.job_message else ""

    def phases(self) -> list[str]:
        """The phases that the job enters after it first ran."""
        if not self.is_handled or self.action is None:
            return ["pending", "running"] if self.ending == "lost" else []
        action = LifecycleAction.RESTART_JOB if self.action in PARTIAL_ACTIONS else self.action
        if self.times == 1:
            return AFTER[action]
        return ["pending", "running", *AFTER[action]] if self.cause == "TaskFailed" else [*AFTER[action], "failed"]


ANSWERS: tuple[tuple[str, LifecycleAction | None], ...] = (
    ("", None),
    ("PodFailed", LifecycleAction.RESTART_JOB),
    ("PodFailed", LifecycleAction.RESTART_POD),
    ("PodFailed", LifecycleAction.RESTART_TASK),
    ("PodFailed", LifecycleAction.ABORT_JOB),
    ("exit", LifecycleAction.TERMINATE_JOB),
)
_OTHERS = [
    Cell("exits", "PodFailed", LifecycleAction.RESTART_JOB, times=2),
    Cell("killed", "PodFailed", LifecycleAction.RESTART_POD, times=2),
    Cell("lost"),
    Cell("lost", "PodFailed", LifecycleAction.TERMINATE_JOB),
    Cell("lost", "PodEvicted", LifecycleAction.RESTART_JOB),
    Cell("lost", "PodEvicted", LifecycleAction.RESTART_POD),
    Cell("lost", "PodEvicted", LifecycleAction.ABORT_JOB),
    Cell("lost", "TaskFailed", LifecycleAction.TERMINATE_JOB, times=2),
    Cell("done"),
    Cell("done", "PodFailed", LifecycleAction.RESTART_JOB),
    Cell("done", "TaskCompleted", LifecycleAction.COMPLETE_JOB),
    Cell("done", "TaskCompleted", LifecycleAction.ABORT_JOB),
    *(Cell("deaf", "person", action) for action in (*AFTER, LifecycleAction.RESTART_POD)),
    Cell("orphaned", "person", LifecycleAction.ABORT_JOB),
    Cell("orphaned", "person", LifecycleAction.RESTART_TASK),
]
_FAILED = [
    Cell(ending, *answer)
    for (at, ending), (turn, answer) in product(enumerate(FAILURES), enumerate(ANSWERS))
    if (at + turn) % EVERY == 0
]
CELLS = [*_FAILED, *_OTHERS[:: min(EVERY, 2)]]
"""By default a third of the pairs of a failure and an answer, with each of both, and every other of the rest."""
