"""Where a job comes from: links to its batch, flow and schedule."""

from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _

from hekla.apps.batches import selectors as batches
from hekla.apps.compiled import CompiledValues, Parameter
from hekla.apps.flows import selectors as flows
from hekla.apps.gallery import selectors as gallery
from hekla.apps.jobs.models import Job
from hekla.apps.schedules import selectors as schedules


@dataclass(frozen=True, slots=True)
class Origin:
    """What the job is part of."""

    label: str
    name: str
    url: str


def context(job: Job) -> dict[str, Any]:
    """`origins`: links, and `template_use`: the version of a template that it was submitted from, or None."""
    found = _ORIGINS.rows(job=job.pk)
    made = [Origin(_LABELS[kind](), name, reverse(_ROUTES[kind], args=[uid])) for kind, uid, name in found]
    return {"origins": made, "template_use": gallery.use_of(job)}


_ROUTES = {"flow": "flows:detail", "batch": "batches:detail", "schedule": "schedules:detail"}
_LABELS = {"flow": lambda: _("Flow"), "batch": lambda: _("Batch"), "schedule": lambda: _("Schedule")}
_JOB = Parameter("job", Job._meta.pk)
_ORIGINS = CompiledValues(
    lambda: flows.origin_of(_JOB).union(batches.origin_of(_JOB), schedules.origin_of(_JOB))  # one query
)
