"""Every phase, event and action: the resulting phase, version, retries and pods of a job.

The expected results are in tables, written by hand from the semantics. The cells are generated from them.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.domain.lifecycle.harness import spec

from hekla.domain.lifecycle import (
    ActionTarget,
    JobFacts,
    JobOutcome,
    PodFacts,
    Stimulus,
    advance,
    overdue,
    resolve,
    stimuli_of,
)
from hekla.domain.phases import GangPhase, JobPhase, PodPhase
from hekla.domain.policies import POLICY_ACTIONS, POLICY_EVENTS, LifecycleAction, LifecycleEvent

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SECONDS = 60
LOST, FAILED, PENDING, SUCCEEDED, RUNNING = (
    PodPhase.LOST,
    PodPhase.FAILED,
    PodPhase.PENDING,
    PodPhase.SUCCEEDED,
    PodPhase.RUNNING,
)


def pod(name: str, attempt: int, phase: PodPhase, **facts) -> PodFacts:
    task, index = name.split("-")
    return PodFacts(task, int(index), attempt, 1, phase, since=NOON, **facts)


# Task a: a-0 has succeeded, a-1 and a-3 run, and a-2 is the subject of the event; a-3 is in its partition. Task b runs.
OTHER_PODS = [pod("a-0", 1, SUCCEEDED), pod("a-1", 1, RUNNING), pod("a-3", 1, RUNNING), pod("b-0", 1, RUNNING)]
SUBJECTS = {
    "PodFailed": [pod("a-2", 1, FAILED, exit_code=7)],
    "exit code 7": [pod("a-2", 1, FAILED, exit_code=7)],
    "*": [pod("a-2", 1, FAILED, exit_code=7)],
    "PodEvicted": [pod("a-2", 1, FAILED, exit_code=143, stopping=True, evicted=True)],
    "PodPending": [pod("a-2", 1, PENDING)],
    "TaskFailed": [pod("a-2", attempt, LOST) for attempt in (1, 2)],
    "TaskCompleted": [pod("a-1", 1, SUCCEEDED), pod("a-3", 1, SUCCEEDED), pod("a-2", 1, SUCCEEDED)],
}
CAUSES = {name: {"events": [name]} for name in [*map(str, POLICY_EVENTS)]} | {"exit code 7": {"exit_code": 7}}

RESTARTS_ON = ("pending",)  # or no step yet, while its pods are stopping
# Result of an action in a phase that supports it: (phases, added versions, added retries, pods that still count).
# "others": all but task a; "parts": all but the partition of the subject; "rest": all but the subject;
# "ended": ended pods; "done": succeeded pods; "none".
ACTIVE = {
    LifecycleAction.RESTART_JOB: (("restarting",), 1, 1, "none"),
    LifecycleAction.RESTART_TASK: (("restarting",), 0, 1, "others"),
    LifecycleAction.RESTART_POD: (("restarting",), 0, 1, "rest"),
    LifecycleAction.RESTART_PARTITION: (("restarting",), 0, 1, "parts"),
    LifecycleAction.ABORT_JOB: (("aborting",), 0, 0, "ended"),
    LifecycleAction.COMPLETE_JOB: (("completing",), 0, 0, "ended"),
    LifecycleAction.TERMINATE_JOB: (("terminating",), 0, 0, "ended"),
}
STOPPING = {LifecycleAction.RESUME_JOB: (("restarting",), 0, 0, "done")}
WANT = {
    JobPhase.PENDING: ACTIVE,
    JobPhase.RUNNING: ACTIVE,
    JobPhase.RESTARTING: {
        LifecycleAction.RESTART_TASK: (RESTARTS_ON, 0, 0, "others"),
        LifecycleAction.RESTART_POD: (RESTARTS_ON, 0, 0, "rest"),
        LifecycleAction.RESTART_PARTITION: (RESTARTS_ON, 0, 0, "parts"),
        LifecycleAction.ABORT_JOB: (("aborting",), 0, 0, "ended"),
        LifecycleAction.COMPLETE_JOB: (("completing",), 0, 0, "ended"),
        LifecycleAction.TERMINATE_JOB: (("terminating",), 0, 0, "ended"),
    },
    JobPhase.ABORTING: STOPPING,
    JobPhase.ABORTED: STOPPING,
}
PARTIAL = (LifecycleAction.RESTART_TASK, LifecycleAction.RESTART_POD, LifecycleAction.RESTART_PARTITION)


def job(phase: JobPhase, cause: str, action: LifecycleAction) -> JobFacts:
    delay = {"timeout_seconds": SECONDS} if cause == "PodPending" else {}
    policy = {**CAUSES[cause], "action": str(action), **delay}
    job_spec = spec({"name": "a", "replicas": 4, "partition_size": 2, "max_retry": 1}, {"name": "b"}, policies=[policy])
    return JobFacts(job_spec, phase, GangPhase.RUNNING)


def pods(phase: JobPhase, cause: str) -> list[PodFacts]:
    """The pods of the job; in a final phase the live ones were stopped."""
    subjects = SUBJECTS.get(cause, [pod("a-2", 1, RUNNING)])
    existing = [pod for pod in OTHER_PODS if all(pod.slot != other.slot for other in subjects)] + subjects
    if not phase.is_final:
        return existing
    return [replace(pod, phase=FAILED, stopping=True) if pod.is_alive else pod for pod in existing]


def action_of_event(
    facts: JobFacts, cause: str, existing: list[PodFacts]
) -> tuple[LifecycleAction, ActionTarget | None]:
    """The action of the event, and its target."""
    if cause == "PodPending":
        return overdue(facts, existing, NOON + timedelta(seconds=SECONDS)) or (LifecycleAction.SYNC_JOB, None)
    if cause in SUBJECTS:
        [stimulus] = stimuli_of(facts, existing, existing[-1:])
    else:
        stimulus = Stimulus(event=LifecycleEvent(cause))
    return resolve(facts, stimulus), stimulus.target


def latest(existing: list[PodFacts]) -> list[PodFacts]:
    """The last attempt of each replica."""
    return list({pod.slot: pod for pod in existing}.values())


def remaining(existing: list[PodFacts], outcome: JobOutcome) -> set[str]:
    """The pods that still count for the job."""
    left = [pod for pod in latest(existing) if pod.version == outcome.version and not pod.stopping]
    return {str(pod.slot) for pod in left if pod.ref not in outcome.stop}


def expected_remaining(which: str, existing: list[PodFacts]) -> set[str]:
    """The pods that `which` selects."""
    left = [pod for pod in latest(existing) if not pod.stopping]
    chosen = {
        "none": [],
        "others": [pod for pod in left if pod.task != "a"],
        "parts": [pod for pod in left if pod.task != "a" or pod.index < 2],
        "rest": [pod for pod in left if pod.slot != existing[-1].slot],
        "ended": [pod for pod in left if not pod.is_alive],
        "done": [pod for pod in left if pod.phase is SUCCEEDED],
    }[which]
    return {str(pod.slot) for pod in chosen}


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize("phase", JobPhase)
def test_outcome_of_each_event_action_and_phase(phase, cause):
    for action in POLICY_ACTIONS:
        check_outcome(phase, cause, action)


def check_outcome(phase: JobPhase, cause: str, action: LifecycleAction) -> None:
    """Asserts what the action does that a policy ties to the event."""
    facts, existing = job(phase, cause, action), pods(phase, cause)
    no_part = action in PARTIAL and cause not in SUBJECTS
    gone = phase.is_final and cause == "PodPending"
    want = None if no_part or gone else WANT.get(phase, {}).get(action)
    outcome = advance(facts, existing, *action_of_event(facts, cause, existing), now=NOON)
    if want is None:
        assert outcome == advance(facts, existing, LifecycleAction.SYNC_JOB, now=NOON), action
        return
    phases, versions, retries, which = want
    assert str(outcome.steps[0].phase) in phases if outcome.steps else phases == RESTARTS_ON, action
    assert (outcome.version, outcome.retry_count) == (1 + versions, retries), action
    assert remaining(existing, outcome) == expected_remaining(which, existing), action


@pytest.mark.parametrize("cause", [cause for cause in SUBJECTS if cause != "PodPending"])
@pytest.mark.parametrize("phase", JobPhase)
def test_events_from_before_a_restart_are_ignored(phase, cause):
    for action in POLICY_ACTIONS:
        facts, existing = replace(job(phase, cause, action), version=2), pods(phase, cause)
        [stimulus] = stimuli_of(facts, existing, existing[-1:])
        assert resolve(facts, stimulus) is LifecycleAction.SYNC_JOB, action
