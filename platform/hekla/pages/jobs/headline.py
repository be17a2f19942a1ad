"""The line below a job's name: how far its pods are."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hekla.apps.jobs.models import Job, Pod
from hekla.domain.phases import JobPhase, PodPhase


@dataclass(frozen=True, slots=True)
class PodProgress:
    """How many of the job's replicas are where the job's phase wants them."""

    count: int
    total: int
    state: str
    words: str


def progress(job: Job, current: Sequence[Pod]) -> PodProgress:
    """`current`: the last attempt of each replica."""
    total = max(job.replicas, 1)
    running, done, failed = (
        sum(pod.phase == phase for pod in current) for phase in (PodPhase.RUNNING, PodPhase.SUCCEEDED, PodPhase.FAILED)
    )
    if job.phase == JobPhase.FAILED and failed:
        words = ngettext("%(n)d of %(of)d pod failed", "%(n)d of %(of)d pods failed", total)
        if done:
            words = _("%(n)d of %(of)d pods failed, %(done)d succeeded")
        return PodProgress(failed, total, "failed", words % {"n": failed, "of": total, "done": done})
    if job.is_final or (done and not running):
        words = ngettext("%(n)d of %(of)d pod succeeded", "%(n)d of %(of)d pods succeeded", total)
        return PodProgress(done, total, "done", words % {"n": done, "of": total})
    words = ngettext("%(n)d of %(of)d pod running", "%(n)d of %(of)d pods running", total)
    return PodProgress(running, total, "running", words % {"n": running, "of": total})
