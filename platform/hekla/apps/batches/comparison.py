"""Any jobs as runs: with the parameters of their batches, the settings that differ between them, and their metrics."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.batches import selectors
from hekla.apps.job_metrics import selectors as job_metrics
from hekla.apps.job_metrics.ranking import Run
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.models import Job
from hekla.domain.errors import Invalid, NotFound, Problem
from hekla.domain.spec_parameters import spec_parameters

MOST_JOBS = 50
_HEAVY = ("spec", "reserved_slots")
_OF_SPEC = ("queue", "priority", "tasks")


def compare(uids: Sequence[UUID], user: User) -> list[Run]:
    """These jobs in this order, each once. Their parameters are those that differ, first those of batches.

    Raises Invalid for more than 50 jobs, and NotFound if one of them is unknown or outside the person's tenants.
    """
    wanted = list(dict.fromkeys(uids))
    if len(wanted) > MOST_JOBS:
        raise Invalid([Problem("job", _("Compare at most %d jobs at a time.") % MOST_JOBS)])
    visible = jobs.known_to(user).filter(uid__in=wanted).select_related("queue", "cluster").defer(*_HEAVY)
    found: dict[UUID, Job] = {job.uid: job for job in visible}
    if len(found) < len(wanted):
        raise NotFound(_("Unknown job."))
    ordered = [found[uid] for uid in wanted]
    keys = [job.pk for job in ordered]
    metrics, of_batch = job_metrics.figures_of(keys), selectors.parameters_of(keys)
    of_spec = _settings(keys)
    differing = _differing([of_spec[pk] | of_batch.get(pk, {}) for pk in keys], first=of_batch)
    return [
        Run(job, metrics.get(job.pk, {}), parameters, number)
        for number, (job, parameters) in enumerate(zip(ordered, differing, strict=True), 1)
    ]


def _settings(keys: Sequence[int]) -> dict[int, dict[str, str]]:
    """The settings of these jobs. Other parts of their specifications, such as files, are not read."""
    rows = Job.objects.filter(pk__in=keys).values_list("pk", *(f"spec__{name}" for name in _OF_SPEC))
    parts = {pk: dict(zip(_OF_SPEC, values, strict=True)) for pk, *values in rows}
    return {
        pk: spec_parameters({name: one for name, one in part.items() if one is not None}) for pk, part in parts.items()
    }


def _differing(found: Sequence[Mapping[str, str]], *, first: Mapping[int, Mapping[str, str]]) -> list[dict[str, str]]:
    """For each job, those of its settings that differ. Of settings with the same values in each job, the first stays.

    A setting that most jobs lack is one that differs.
    """
    names = dict.fromkeys(name for one in first.values() for name in one)
    names |= dict.fromkeys(name for one in found for name in one)
    columns = dict[tuple[str | None, ...], str]()
    for name in names:
        values = tuple(one.get(name) for one in found)
        if len(set(values)) > 1:
            columns.setdefault(values, name)
    differing = list(columns.values())
    return [{name: one[name] for name in differing if name in one} for one in found]
