"""External pods: the job that they form, and its phase."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from hekla.domain.external_pods import (
    ExternalPod,
    ExternalTasks,
    GroupKind,
    GroupRef,
    RecordedPod,
    assign_refs,
    build_spec,
    job_name,
    phase_changes,
    role_name,
)
from hekla.domain.jobspec import JobSpec
from hekla.domain.lifecycle import JobFacts, PodFacts, PodRef
from hekla.domain.phases import JobPhase, PodPhase

AT = datetime(2026, 1, 1, tzinfo=UTC)
GROUP = GroupRef("team-a", GroupKind.OWNER, "train", "1")
POD = ExternalPod("u", "team-a", "train-0", GROUP, AT, PodPhase.PENDING, AT, request={"cpu": "1"})


@pytest.mark.parametrize("name", ["train", "a/b", "/", "a//", ""])
def test_group_key_round_trip(name: str) -> None:
    """Group names come from annotations, which can contain anything."""
    for owner in ("", "5d1b"):
        ref = GroupRef("team-a", GroupKind.POD_GROUP, name, owner)
        assert GroupRef.of(ref.key) == ref


def spec(minimum: int = 1, count: int = 2) -> JobSpec:
    roles = ExternalTasks(None)
    task = roles.task_of(POD) or ""
    refs = [PodRef(task, index, 1) for index in range(count)]
    fields = {"name": "train", "queue": "default", "priority": 0, "request": {}, "topology": {}}
    return build_spec(GROUP, roles, refs, minimum=minimum, **fields)


def facts(phase: PodPhase, index: int = 0, attempt: int = 1, *, stopping: bool = False) -> PodFacts:
    return PodFacts("pod", index, attempt, 1, phase, stopping)


def test_names_are_converted() -> None:
    assert job_name("My.Train_1") == "my-train-1"
    assert len(job_name("x" * 200, distinct="abcdef12")) <= 36
    assert job_name("…") == "pods"
    assert (role_name("Worker"), role_name("--")) == ("worker", "pod")


def test_equal_pods_of_one_role_are_one_task() -> None:
    roles = ExternalTasks(None)
    pods = [POD, POD, replace(POD, request={"cpu": "2"}), replace(POD, role="master")]
    assert [roles.task_of(pod) for pod in pods] == ["pod", "pod", "pod-v2", "master"]
    assert roles.task_of(replace(POD, request={"cpu": "2"})) == "pod-v2"


def test_pods_with_other_constraints_are_another_task() -> None:
    roles = ExternalTasks(None)
    tolerant = replace(POD, placement={"tolerations": [{"key": "gpu"}]})
    picky = replace(POD, node_selector={"zone": "a"})
    needed = replace(POD, placement={"annotations": {"volcano.sh/preemptable": "false"}})
    pods = [POD, tolerant, picky, needed, tolerant]
    assert [roles.task_of(pod) for pod in pods] == ["pod", "pod-v2", "pod-v3", "pod-v4", "pod-v2"]
    refs = [PodRef(task, 0, 1) for task in ("pod", "pod-v2", "pod-v3", "pod-v4")]
    fields = {"name": "train", "queue": "default", "priority": 0, "request": {}, "topology": {}}
    made = build_spec(GROUP, roles, refs, minimum=1, **fields)
    assert made.task("pod-v2").tolerations[0].key == "gpu"
    assert [ExternalTasks(made).task_of(pod) for pod in pods[:4]] == ["pod", "pod-v2", "pod-v3", "pod-v4"]


def test_external_job_has_at_most_fifty_tasks() -> None:
    roles = ExternalTasks(None)
    assert all(roles.task_of(replace(POD, role=f"r{number}")) for number in range(50))
    assert roles.task_of(replace(POD, role="more")) is None


def test_missing_pods_are_replicas_without_a_pod() -> None:
    found = spec(minimum=5)
    assert (found.replicas, found.gang_minimum) == (5, 5)
    assert found.task("pod").minimum == 0


@pytest.mark.parametrize(
    ("recorded", "expected"),
    [
        ([], PodRef("pod", 0, 1)),
        ([RecordedPod(PodRef("pod", 0, 1), "other", PodPhase.RUNNING)], PodRef("pod", 1, 1)),
        ([RecordedPod(PodRef("pod", 0, 1), "other", PodPhase.SUCCEEDED)], PodRef("pod", 1, 1)),
        ([RecordedPod(PodRef("pod", 0, 1), "other", PodPhase.FAILED)], PodRef("pod", 0, 2)),
        ([RecordedPod(PodRef("pod", 0, 1), "other", PodPhase.LOST)], PodRef("pod", 0, 2)),
        (
            [
                RecordedPod(PodRef("pod", 0, 1), "other", PodPhase.FAILED),
                RecordedPod(PodRef("pod", 1, 1), "train-0", PodPhase.LOST),
            ],
            PodRef("pod", 1, 2),
        ),
    ],
)
def test_new_pod_replaces_a_failed_one_by_name_first(recorded: list[RecordedPod], expected: PodRef) -> None:
    assert assign_refs([(POD, "pod")], recorded) == [(POD, expected)]


def test_new_pods_get_different_replicas() -> None:
    recorded = [RecordedPod(PodRef("pod", 0, 1), "old", PodPhase.FAILED)]
    found = assign_refs([(POD, "pod"), (replace(POD, uid="v", name="train-1"), "pod")], recorded)
    assert [ref for _pod, ref in found] == [PodRef("pod", 0, 2), PodRef("pod", 1, 1)]


ENDS = [
    ([PodPhase.SUCCEEDED, PodPhase.SUCCEEDED], JobPhase.COMPLETED),
    ([PodPhase.SUCCEEDED, PodPhase.LOST], JobPhase.COMPLETED),
    ([PodPhase.SUCCEEDED, PodPhase.FAILED], JobPhase.FAILED),
    ([PodPhase.LOST, PodPhase.LOST], JobPhase.TERMINATED),
    ([PodPhase.SUCCEEDED, PodPhase.RUNNING], JobPhase.RUNNING),
]


@pytest.mark.parametrize(("phases", "expected"), ENDS)
def test_job_phase_follows_its_pods(phases: list[PodPhase], expected: JobPhase) -> None:
    pods = [facts(phase, index) for index, phase in enumerate(phases)]
    steps = phase_changes(JobFacts(spec()), pods, has_started=False)
    assert steps[-1].phase is expected


@pytest.mark.parametrize(
    ("driver", "executor", "expected"),
    [
        (PodPhase.SUCCEEDED, PodPhase.FAILED, JobPhase.COMPLETED),
        (PodPhase.FAILED, PodPhase.SUCCEEDED, JobPhase.FAILED),
        (PodPhase.LOST, PodPhase.SUCCEEDED, JobPhase.TERMINATED),
        (PodPhase.SUCCEEDED, PodPhase.RUNNING, JobPhase.RUNNING),
    ],
)
def test_driver_of_spark_decides(driver: PodPhase, executor: PodPhase, expected: JobPhase) -> None:
    pods = [replace(facts(driver), task="driver"), replace(facts(executor), task="executor")]
    assert phase_changes(JobFacts(spec()), pods, has_started=False)[-1].phase is expected


def test_evicted_pod_has_not_failed() -> None:
    steps = phase_changes(JobFacts(spec(), JobPhase.RUNNING), [facts(PodPhase.FAILED, stopping=True)], has_started=True)
    assert [step.phase for step in steps] == [JobPhase.TERMINATED]


def test_finished_job_restarts_with_new_pods() -> None:
    pods = [facts(PodPhase.FAILED), facts(PodPhase.RUNNING, attempt=2)]
    steps = phase_changes(JobFacts(spec(), JobPhase.FAILED), pods, has_started=True)
    assert [step.phase for step in steps] == [JobPhase.RESTARTING, JobPhase.PENDING, JobPhase.RUNNING]


def test_job_runs_when_its_minimum_runs() -> None:
    pods = [facts(PodPhase.RUNNING), facts(PodPhase.PENDING, 1)]
    assert phase_changes(JobFacts(spec(minimum=2)), pods, has_started=False) == ()
    assert phase_changes(JobFacts(spec(minimum=1)), pods, has_started=False)[-1].phase is JobPhase.RUNNING
