"""The tab of a job's settings: what was submitted, and the forms that change it."""

import json
from collections.abc import Sequence
from typing import Any

from hekla.apps.jobs import services
from hekla.apps.jobs.facts import spec_fault, spec_of
from hekla.apps.jobs.models import Job, Pod
from hekla.domain import formats
from hekla.pages.job_forms import network_closeness
from hekla.pages.jobs import volumes
from hekla.pages.jobs.priority_form import PriorityForm
from hekla.pages.jobs.size_form import SizeForm


def context(
    job: Job, pods: Sequence[Pod], *, may_act: bool, size: SizeForm | None, priority: PriorityForm | None
) -> dict[str, Any]:
    """The context of the tab. `pods`: all attempts. Refused forms keep their typed values."""
    if may_act and size is None and services.is_scalable(job):
        size = SizeForm(job=job)
    fixed = services.fixed_since(job) if may_act else ""
    if may_act and priority is None and services.has_priority(job) and not fixed:
        priority = PriorityForm(job=job)
    spec = spec_of(job)
    return {
        "job_spec": spec,
        "volumes": volumes.volume_views(spec),
        "closeness": network_closeness.words(spec.network_topology),
        "manifest": _stored_text(job) if spec_fault(job) else formats.dump(spec),
        "size": size,
        "size_remarks": services.scaling_remarks(job, pods) if size else (),
        "priority": priority,
        "priority_is_fixed": fixed,
    }


def _stored_text(job: Job) -> str:
    """The stored specification as it is: one that is not valid has no manifest."""
    return json.dumps(job.spec, indent=2, ensure_ascii=False)
