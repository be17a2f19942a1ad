"""The cards that jobs request, for lists: read with the rows, without parsing whole specifications."""

from collections.abc import Mapping
from typing import Any

from django.db.models import F, QuerySet

from hekla.apps.jobs.models import Job
from hekla.domain.card_resources import card_counts, of_cards
from hekla.domain.resources import Resources

_TASKS = "listed_tasks"


def with_tasks(jobs: QuerySet[Job]) -> QuerySet[Job]:
    """These jobs with the part of their specification that `requested` reads."""
    return jobs.annotate(**{_TASKS: F("spec__tasks")})


def requested(job: Job) -> dict[str, float]:
    """How many cards of each resource all pods of the job request. The job must come from `with_tasks`."""
    found: dict[str, float] = {}
    for task in getattr(job, _TASKS) or ():
        for resource, count in _of_task(task).items():
            found[resource] = found.get(resource, 0) + count * task.get("replicas", 1)
    return found


def _of_task(task: Mapping[str, Any]) -> dict[str, float]:
    resources = task.get("resources")
    return card_counts(Resources.parse(resources)) if resources and of_cards(resources) else {}
