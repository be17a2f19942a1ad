"""Limits, retries and queue of a job: `runPolicy` of Kubeflow's jobs, and the same fields of a Kubernetes Job."""

from typing import Any

from hekla.domain.formats.fields import Fields
from hekla.domain.formats.reader import ManifestReader
from hekla.domain.formats.writing import without_empty
from hekla.domain.jobspec import JobSpec
from hekla.domain.task_spec import MAX_RETRY
from hekla.domain.translation import gettext_noop, translate

CLEAN = gettext_noop("running pods stop when the job ends. Finished pods stay on record until the job is deleted.")
_TOGETHER = gettext_noop("restarts of single pods count too.")
_WAIT = gettext_noop("a gang waits until it fits.")


def read(reading: ManifestReader, spec: Fields) -> tuple[dict[str, Any], bool]:
    """The JobSpec fields in `runPolicy`, and whether failed pods may restart at all."""
    policy = spec.fields("runPolicy")
    scheduling = policy.fields("schedulingPolicy")
    document, retries = read_limits(reading, policy)
    document |= {
        "queue": reading.take(scheduling, "queue", "queue"),
        "priority_class": reading.take(scheduling, "priorityClass", "priority_class"),
        "min_available": reading.take(scheduling, "minAvailable", "min_available", zero_is_default=True),
    }
    if needs := scheduling.mapping("minResources"):
        reading.findings.origins["min_resources"] = scheduling.at("minResources")
        document["min_resources"] = needs
    reading.unless(scheduling, "scheduleTimeoutSeconds", (), translate(_WAIT))
    reading.unless(policy, "cleanPodPolicy", ("Running", "All"), translate(CLEAN))
    scheduling.close()
    policy.close()
    return document, retries


def read_limits(reading: ManifestReader, owner: Fields) -> tuple[dict[str, Any], bool]:
    """The fields that a Kubernetes Job has too."""
    reading.unless(owner, "suspend", (False,), translate("a submitted job starts as soon as it fits."))
    reading.unless(owner, "managedBy", (), translate("this platform runs the job."))
    reading.findings.origins["max_retry"] = owner.at("backoffLimit")
    limit = owner.take("backoffLimit")
    if isinstance(limit, int) and limit > MAX_RETRY:
        reading.findings.not_honoured(owner.at("backoffLimit"), most_retries())
        limit = MAX_RETRY
    retries = isinstance(limit, bool) or limit != 0
    ttl = reading.take(owner, "ttlSecondsAfterFinished", "ttl_seconds_after_finished")
    deadline = reading.take(owner, "activeDeadlineSeconds", "active_deadline_seconds")
    limits = {"active_deadline_seconds": deadline, "ttl_seconds_after_finished": ttl}
    return limits | {"max_retry": limit if retries else None}, retries


def most_retries() -> str:
    """The message about the maximum number of restarts."""
    return translate("a job restarts at most {most} times.", most=MAX_RETRY)


def limited(reading: ManifestReader, retries: object) -> Any:  # noqa: ANN401  (the spec judges it)
    """The restarts of a job whose pods restart too, with the messages about their maximum and their count."""
    if isinstance(retries, int) and retries > MAX_RETRY:
        reading.findings.remark("max_retry", most_retries())
        return MAX_RETRY
    if retries:
        reading.findings.remark("max_retry", translate(_TOGETHER))
    return retries


def write(spec: JobSpec) -> dict[str, Any]:
    """The `runPolicy` with which the job ends in Kubeflow as it does here."""
    return without_empty(
        cleanPodPolicy="Running",
        backoffLimit=spec.max_retry,
        activeDeadlineSeconds=spec.active_deadline_seconds,
        ttlSecondsAfterFinished=spec.ttl_seconds_after_finished,
        schedulingPolicy=without_empty(
            queue=spec.queue,
            minAvailable=spec.min_available,
            minResources=dict(spec.min_resources),
            priorityClass=spec.priority_class or None,
        ),
    )
