"""Events in jobs that are restarting, ending or over, and the effect of their policies: the tables of the late matrix.

One pod of each job has succeeded and four run. Pods take long to end after a stop, so a job stays in its phase for
hours; those of `rest` end last. Only in aborted and terminated jobs do all pods end at once, because no pod of such a
job is alive.
"""

from dataclasses import dataclass
from itertools import product
from typing import Any

from tests.controller.matrix import CAUSES, ENDED_BY, ENDS, FOR_EVER, PARTIAL, Cell, State, stuck, task

from hekla.domain.phases import JobPhase
from hekla.domain.policies import POLICY_ACTIONS, LifecycleAction

P = JobPhase
LATE = tuple(phase for phase in P if phase not in (P.PENDING, P.RUNNING))
ENDED = (P.ABORTED, P.TERMINATED)
"""Phases in which no pod is alive."""
BY_ITSELF = (P.COMPLETED, P.FAILED)
"""Phases that jobs reach with live pods: one success was enough, or the time limit is over."""
LED_BY = {P.RESTARTING: LifecycleAction.RESTART_TASK} | {by: ENDED_BY[by] for by in ENDED_BY if by not in BY_ITSELF}
SIZE_IS_FIXED = (P.COMPLETING, P.COMPLETED, P.TERMINATING, P.TERMINATED, P.FAILED)

# In seconds: jobs enter their phase, then the events occur, then the stopped pods end.
DONE, LEAD, SUCCESS, GRACE, EVENT, LAST_GRACE, SETTLE = 200, 400, 1200, 1800, 3600, 7200, 14_400

AT_WORK = {
    "done-0": "1 succeeded",
    "rest-0": "1 running",
    "rest-1": "1 running",
    "work-0": "1 running",
    "work-1": "1 running",
}
RESTS_LEAVE = {"rest-0": "1 running stopping", "rest-1": "1 running stopping"}
ALL_LEAVE = RESTS_LEAVE | {"work-0": "1 running stopping", "work-1": "1 running stopping"}
WORK_GONE = {"work-0": "1 failed stopping", "work-1": "1 failed stopping"}
ALL_GONE = {"rest-0": "1 failed stopping", "rest-1": "1 failed stopping"} | WORK_GONE
ALL_AGAIN = {"rest-0": "2 running", "rest-1": "2 running", "work-0": "2 running", "work-1": "2 running"}

# Effects on the pods of `work`, by event: where the job continues, and where it does not.
TO_WORK = {
    "PodFailed": {"work-1": "1 failed"},
    "any": {"work-1": "1 failed"},
    "exit": {"work-1": "1 failed"},
    "PodEvicted": {"work-1": "1 failed stopping"},
    "TaskFailed": {"work-1": "1 lost"},
    "TaskCompleted": {"work-0": "1 succeeded", "work-1": "1 succeeded"},
}
TO_LEAVING = {
    "TaskFailed": {"work-1": "1 lost stopping"},
    "TaskCompleted": {"work-0": "1 succeeded stopping", "work-1": "1 succeeded stopping"},
}

# The pods that a restart of a task, of one pod or of a partition affects while the job restarts. An Unknown gang
# affects none, and a change of the task affects all of its pods.
BOTH = ("work-0", "work-1")
OF_TASK = {"PodPending": ("stuck-0",), "Unknown": ()}
OF_POD = {"PodPending": ("stuck-0",), "Unknown": (), "TaskCompleted": ("work-0",), "JobUpdated": BOTH}

RESUMED_BY = ("PodEvicted", "Unknown", "JobUpdated")
"""Events that still occur while a job is aborting. The end of a stopped pod is no event for a policy."""
ALL_STOPPING = {
    "done-0": "1 succeeded",
    "rest-0": "2 failed stopping",
    "rest-1": "2 failed stopping",
    "stuck-0": "1 failed stopping",
    "work-0": "1 running stopping",
    "work-1": "1 running stopping",
}
"""A restart of a restarting job has no effect. A pod that still waits too long afterwards sets off the policy again."""


@dataclass(frozen=True)
class LateCell(Cell):
    """A cell of the late matrix. For PodPending, one more pod fits no node."""

    phase: JobPhase

    def tasks(self) -> list[dict[str, Any]]:
        grace, last_grace = (0, 0) if self.phase in ENDED else (GRACE, LAST_GRACE)
        of_work = {"replicas": 2, "partition_size": 1, "max_retry": 1, "grace_seconds": grace}
        tasks = [
            task("done", DONE if self.phase is P.COMPLETED else 0),
            task("work", SUCCESS if self.cause == "TaskCompleted" else FOR_EVER, **of_work),
            task("rest", replicas=2, grace_seconds=last_grace),
        ]
        return [*tasks, stuck(min_available=0)] if self.cause == "PodPending" else tasks

    def more(self) -> dict[str, Any]:
        return {P.COMPLETED: {"min_success": 1}, P.FAILED: {"active_deadline_seconds": DONE}}.get(self.phase, {})

    def at_work(self) -> State:
        """Before the job enters its phase."""
        done = {"done-0": "1 running"} if self.phase is P.COMPLETED else {}
        return "running", 1, 0, AT_WORK | done | self._stuck("1 pending")

    def entered(self) -> State:
        """After the job entered its phase."""
        if self.phase is P.RESTARTING:
            evicted = {"work-1": "1 running stopping"} if self.cause == "PodEvicted" else {}
            return self.phase, 1, 0, AT_WORK | RESTS_LEAVE | evicted | self._stuck("1 pending")
        pods = ALL_GONE if self.phase in ENDED else ALL_LEAVE
        return self.phase, 1, 0, AT_WORK | pods | self._stuck("1 failed stopping")

    def happened(self) -> State:
        """Right after the event."""
        phase, version, retries, pods = self.entered()
        if self.phase is P.RESTARTING:
            return self._next_phase(), version, retries, self._stop_affected(pods | TO_WORK.get(self.cause, {}))
        if self.phase in ENDED:
            return phase, version, retries, pods
        return self._next_phase(), version, retries, pods | WORK_GONE | TO_LEAVING.get(self.cause, {})

    def settled(self) -> State:
        """After all stopped pods ended and all new pods started."""
        phase, version, retries, pods = self.happened()
        if phase is not P.RESTARTING:
            return dict(ENDS.values()).get(phase, phase), version, retries, _ended(pods)
        if self.phase is P.ABORTING:
            return "running", version, retries, pods | ALL_AGAIN | self._new("1 running")
        if (self.cause, self.action) == ("PodPending", LifecycleAction.RESTART_JOB):
            return P.RESTARTING, 2, 1, ALL_STOPPING
        return "running", version, retries, _restarted(pods) | self._new("1 running")

    def counted(self, state: State) -> State:
        """Counts the attempts: for TaskFailed, one pod was lost before."""
        phase, version, retries, pods = state
        number, _, rest = pods["work-1"].partition(" ")
        before = {"work-1": f"{int(number) + 1} {rest}"} if self.cause == "TaskFailed" else {}
        return phase, version, retries, pods | before

    def _next_phase(self) -> JobPhase:
        """The phase that the action leads to from this one."""
        if self.phase is P.RESTARTING and self.action in ENDS:
            return ENDS[self.action][0]
        is_resumed = self.action is LifecycleAction.RESUME_JOB and self.cause in RESUMED_BY
        return P.RESTARTING if self.phase is P.ABORTING and is_resumed else self.phase

    def _stop_affected(self, pods: dict[str, str]) -> dict[str, str]:
        """Marks the pods that the action affects as stopping; a pending pod fails at once."""
        chosen: tuple[str, ...] = ()
        if self.action in ENDS:
            chosen = tuple(name for name, state in pods.items() if state in ("1 running", "1 pending"))
        elif self.action in PARTIAL:
            of_part = OF_TASK if self.action is LifecycleAction.RESTART_TASK else OF_POD
            chosen = of_part.get(self.cause, BOTH if self.action is LifecycleAction.RESTART_TASK else ("work-1",))
        stopped = {name: pods[name].replace("pending", "failed") for name in chosen}
        return pods | {name: f"{state.removesuffix(' stopping')} stopping" for name, state in stopped.items()}

    def _stuck(self, state: str) -> dict[str, str]:
        return {"stuck-0": state} if self.cause == "PodPending" else {}

    def _new(self, state: str) -> dict[str, str]:
        """The replica that Alice added."""
        return {"work-2": state} if self.cause == "JobUpdated" else {}


def _ended(pods: dict[str, str]) -> dict[str, str]:
    return {name: state.replace("running", "failed") for name, state in pods.items()}


def _restarted(pods: dict[str, str]) -> dict[str, str]:
    """Each replica with a stopping pod has a new attempt."""
    again = {name: "2 pending" if name == "stuck-0" else "2 running" for name in pods}
    return {name: again[name] if state.endswith("stopping") else state for name, state in pods.items()}


CELLS = [LateCell(phase, cause, action) for phase, cause, action in product(LATE, CAUSES, POLICY_ACTIONS)]
