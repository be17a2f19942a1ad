"""Measures of jobs in words."""

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from hekla.apps.job_history.labels import duration
from hekla.apps.measures.job_reports import FailurePlace, JobGroupBy
from hekla.domain.job_measures import FailureCause, JobSize, MomentKind, WaitReason

Words = str | Promise
KINDS: dict[MomentKind, Words] = {
    MomentKind.SUBMITTED: _("Submitted"),
    MomentKind.STARTED: _("Started"),
    MomentKind.WAITED: _("Waited for a reason"),
    MomentKind.COMPLETED: _("Completed"),
    MomentKind.FAILED: _("Failed"),
    MomentKind.STOPPED: _("Stopped"),
    MomentKind.UNSTARTED: _("Never started"),
    MomentKind.PREEMPTED: _("Preempted"),
    MomentKind.RETRIED: _("Retried"),
}
MEANINGS: dict[MomentKind, Words] = {
    MomentKind.SUBMITTED: _("Jobs that were submitted."),
    MomentKind.STARTED: _("Jobs whose gang ran for the first time. Their waiting times are above."),
    MomentKind.WAITED: _("Jobs that started, and had waited for this reason before."),
    MomentKind.COMPLETED: _("Jobs that succeeded, or that a person completed early."),
    MomentKind.FAILED: _("Jobs that failed, or that a policy stopped because a pod failed or was preempted."),
    MomentKind.STOPPED: _("Jobs that were aborted or terminated, and did not fail."),
    MomentKind.UNSTARTED: _("Jobs that ended without ever having started. They are also counted by their result."),
    MomentKind.PREEMPTED: _(
        "Times at which pods of a job were evicted for other jobs. A job can count more than once."
    ),
    MomentKind.RETRIED: _("Restarts by policy. A job can count more than once."),
}
CAUSES: dict[FailureCause, Words] = {
    FailureCause.EXIT_CODE: _("Exit code"),
    FailureCause.MEMORY: _("Out of memory"),
    FailureCause.NODE: _("Node lost"),
    FailureCause.PRESSURE: _("Evicted by the node"),
    FailureCause.PREEMPTED: _("Preempted for good"),
    FailureCause.IMAGE: _("Image not pulled"),
    FailureCause.TIMEOUT: _("Time limit"),
    FailureCause.START: _("Could not start"),
    FailureCause.OTHER: _("Other"),
}
CAUSE_MEANINGS: dict[FailureCause, Words] = {
    FailureCause.EXIT_CODE: _("The program of a pod ended with an exit code other than 0."),
    FailureCause.MEMORY: _("A pod exceeded its memory request and was stopped."),
    FailureCause.NODE: _("The node or the record of a pod was lost, and the pod was not replaced any more."),
    FailureCause.PRESSURE: _("The node evicted a pod because it ran out of a resource."),
    FailureCause.PREEMPTED: _("A pod was evicted for another job, and the policy of the job ended it."),
    FailureCause.IMAGE: _("The image of a pod could not be pulled."),
    FailureCause.TIMEOUT: _("The job or a pod reached its time limit."),
    FailureCause.START: _("A pod could not be started: command, folder, environment or settings."),
    FailureCause.OTHER: _("The job failed, but no pod did: too few successes, or a task that never started."),
}
RESULT_COLOURS: dict[MomentKind, str] = {
    MomentKind.COMPLETED: "#0072b2",
    MomentKind.FAILED: "#d55e00",
    MomentKind.STOPPED: "#8a8f99",
}
CAUSE_COLOURS: dict[FailureCause, str] = {
    FailureCause.EXIT_CODE: "#d55e00",
    FailureCause.MEMORY: "#cc79a7",
    FailureCause.NODE: "#4a4f57",
    FailureCause.PRESSURE: "#f0e442",
    FailureCause.PREEMPTED: "#56b4e9",
    FailureCause.IMAGE: "#e69f00",
    FailureCause.TIMEOUT: "#0072b2",
    FailureCause.START: "#009e73",
    FailureCause.OTHER: "#c3c7cd",
}
"""Okabe's and Ito's colours, and greys. Any two of them can be told apart without one kind of cones."""
REASONS: dict[WaitReason, Words] = {
    WaitReason.CAPACITY: _("Capacity"),
    WaitReason.QUOTA: _("Quota or share of the queue"),
    WaitReason.GANG: _("Room for the whole gang"),
    WaitReason.PRIORITY: _("Jobs of higher priority"),
    WaitReason.CONSTRAINT: _("Nodes that match"),
    WaitReason.DATA: _("Data or volumes"),
    WaitReason.POLICY: _("Scheduling policy"),
    WaitReason.STARTING: _("Pods that start"),
    WaitReason.UNKNOWN: _("No reason known"),
}
PARTS: dict[JobGroupBy, Words] = {
    JobGroupBy.QUEUE: _("Queue"),
    JobGroupBy.TENANT: _("Tenant"),
    JobGroupBy.PERSON: _("Person"),
    JobGroupBy.SIZE: _("Size"),
    JobGroupBy.KIND: _("Kind"),
    JobGroupBy.MODEL: _("Model"),
    JobGroupBy.CLUSTER: _("Cluster"),
}
SIZES: dict[JobSize, Words] = {
    JobSize.NONE: _("No GPU"),
    JobSize.ONE: _("1 GPU"),
    JobSize.NODE_PART: _("2–4 GPUs"),
    JobSize.NODE: _("5–8 GPUs"),
    JobSize.NODES: _("9–16 GPUs"),
    JobSize.MANY: _("17–64 GPUs"),
    JobSize.MOST: _("65 GPUs or more"),
}
PLACES: dict[FailurePlace, Words] = {
    FailurePlace.NODE: _("Node"),
    FailurePlace.IMAGE: _("Image"),
    FailurePlace.EXIT_CODE: _("Exit code"),
}


def part_name(by: JobGroupBy, name: str) -> str:
    """The name of a part in words. Jobs without a model have held no GPUs yet, or need none."""
    if by is JobGroupBy.SIZE and name in list(JobSize):
        return str(SIZES[JobSize(name)])
    return name or str(_("No GPU held"))


def seconds(value: float | None) -> str:
    """A waiting time in words; empty if there is none."""
    return "" if value is None else duration(value)
