"""Why a job waits now, in the same sentences on every page, in REST and on the command line."""

import json
from functools import lru_cache

from django.utils.translation import get_language

from hekla.apps.job_history import labels
from hekla.apps.jobs.models import Job
from hekla.domain.phases import FINAL_JOB_PHASES, STOPPING_JOB_PHASES

_ENDING = frozenset(phase.value for phase in FINAL_JOB_PHASES | STOPPING_JOB_PHASES)


def is_waiting(job: Job) -> bool:
    """Whether the job, or some of its pods, waits to be placed, with a reason. One that is being stopped does not."""
    return bool(job.waiting) and job.phase not in _ENDING


def sentences(job: Job) -> list[str]:
    """All its reasons, the most important first; empty if it does not wait."""
    return [labels.reason(reason) for reason in job.waiting] if is_waiting(job) else []


def first(job: Job) -> str:
    """The most important reason, where there is room for one only; empty if the job does not wait."""
    return _sentence(json.dumps(job.waiting[0]), get_language()) if is_waiting(job) else ""


@lru_cache(maxsize=4096)
def _sentence(reason: str, _language: str | None) -> str:
    """Cached, since most jobs in a list wait for the same reason."""
    return labels.reason(json.loads(reason))
