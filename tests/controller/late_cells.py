"""Events that find a job restarting, ending or over, and what its policy makes of them: the tables of the late matrix.

One pod of each job is done and four work. They take their time to end when they are asked to, so a job stays for hours
where it was led: those of `rest` end last. Only where a job is over since nothing of it lives any more all end at once.
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
"""Phases of which no pod lives to see the end."""
BY_ITSELF = (P.COMPLETED, P.FAILED)
"""Phases that jobs reach though pods of them live: one success was enough, or their time is over."""
LED_BY = {P.RESTARTING: LifecycleAction.RESTART_TASK} | {by: ENDED_BY[by] for by in ENDED_BY if by not in BY_ITSELF}
SIZE_IS_FIXED = (P.COMPLETING, P.COMPLETED, P.TERMINATING, P.TERMINATED, P.FAILED)

# In seconds: jobs are led to their phase, then events come, then all that was asked to end has done so.
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

# How it happens to `work`, where the job goes on and where it does not.
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

# The pods that a restart of a task, and of one of its pods or partitions, is about while the job restarts. Nobody is
# meant where a gang is Unknown, and a change of a task is about all of it.
BOTH = ("work-0", "work-1")
OF_TASK = {"PodPending": ("stuck-0",), "Unknown": ()}
OF_POD = {"PodPending": ("stuck-0",), "Unknown": (), "TaskCompleted": ("work-0",), "JobUpdated": BOTH}

RESUMED_BY = ("PodEvicted", "Unknown", "JobUpdated")
"""What still happens to a job while it is aborted: that pods end which were asked to is no news to a policy."""
ALL_ASKED = {
    "done-0": "1 succeeded",
    "rest-0": "2 failed stopping",
    "rest-1": "2 failed stopping",
    "stuck-0": "1 failed stopping",
    "work-0": "1 running stopping",
    "work-1": "1 running stopping",
}
"""While a job restarts a restart is nothing new. Who waits too long still does when the job goes on: then it is."""


@dataclass(frozen=True)
class LateCell(Cell):
    """See the module. One more pod finds no place where that is the cause."""

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
        """Before it is led to its phase."""
        done = {"done-0": "1 running"} if self.phase is P.COMPLETED else {}
        return "running", 1, 0, AT_WORK | done | self._stuck("1 pending")

    def led(self) -> State:
        """When it has come there."""
        if self.phase is P.RESTARTING:
            evicted = {"work-1": "1 running stopping"} if self.cause == "PodEvicted" else {}
            return self.phase, 1, 0, AT_WORK | RESTS_LEAVE | evicted | self._stuck("1 pending")
        there = ALL_GONE if self.phase in ENDED else ALL_LEAVE
        return self.phase, 1, 0, AT_WORK | there | self._stuck("1 failed stopping")

    def happened(self) -> State:
        """When it has just happened."""
        phase, version, retries, pods = self.led()
        if self.phase is P.RESTARTING:
            return self._entered(), version, retries, self._told_to_end(pods | TO_WORK.get(self.cause, {}))
        if self.phase in ENDED:
            return phase, version, retries, pods
        return self._entered(), version, retries, pods | WORK_GONE | TO_LEAVING.get(self.cause, {})

    def settled(self) -> State:
        """When all has ended that was asked to, and what is to begin again has done so."""
        phase, version, retries, pods = self.happened()
        if phase is not P.RESTARTING:
            return dict(ENDS.values()).get(phase, phase), version, retries, _ended(pods)
        if self.phase is P.ABORTING:
            return "running", version, retries, pods | ALL_AGAIN | self._new("1 running")
        if (self.cause, self.action) == ("PodPending", LifecycleAction.RESTART_JOB):
            return P.RESTARTING, 2, 1, ALL_ASKED
        return "running", version, retries, _begun(pods) | self._new("1 running")

    def counted(self, state: State) -> State:
        """Where a task is to fail, one of its pods was lost before all this."""
        phase, version, retries, pods = state
        number, _, rest = pods["work-1"].partition(" ")
        before = {"work-1": f"{int(number) + 1} {rest}"} if self.cause == "TaskFailed" else {}
        return phase, version, retries, pods | before

    def _entered(self) -> JobPhase:
        """The phase that the action leads to from this one."""
        if self.phase is P.RESTARTING and self.action in ENDS:
            return ENDS[self.action][0]
        is_resumed = self.action is LifecycleAction.RESUME_JOB and self.cause in RESUMED_BY
        return P.RESTARTING if self.phase is P.ABORTING and is_resumed else self.phase

    def _told_to_end(self, pods: dict[str, str]) -> dict[str, str]:
        """With what the action is about asked to end; what has no place does so at once."""
        chosen: tuple[str, ...] = ()
        if self.action in ENDS:
            chosen = tuple(name for name, state in pods.items() if state in ("1 running", "1 pending"))
        elif self.action in PARTIAL:
            of_part = OF_TASK if self.action is LifecycleAction.RESTART_TASK else OF_POD
            chosen = of_part.get(self.cause, BOTH if self.action is LifecycleAction.RESTART_TASK else ("work-1",))
        asked = {name: pods[name].replace("pending", "failed") for name in chosen}
        return pods | {name: f"{state.removesuffix(' stopping')} stopping" for name, state in asked.items()}

    def _stuck(self, state: str) -> dict[str, str]:
        return {"stuck-0": state} if self.cause == "PodPending" else {}

    def _new(self, state: str) -> dict[str, str]:
        """The replica that Alice wished for."""
        return {"work-2": state} if self.cause == "JobUpdated" else {}


def _ended(pods: dict[str, str]) -> dict[str, str]:
    return {name: state.replace("running", "failed") for name, state in pods.items()}


def _begun(pods: dict[str, str]) -> dict[str, str]:
    """Each replica whose pod was asked to end has another one."""
    again = {name: "2 pending" if name == "stuck-0" else "2 running" for name in pods}
    return {name: again[name] if state.endswith("stopping") else state for name, state in pods.items()}


CELLS = [LateCell(phase, cause, action) for phase, cause, action in product(LATE, CAUSES, POLICY_ACTIONS)]
