"""A job once more: what it asked for, under a name that is free, and what must be said again."""

from collections.abc import Sequence
from dataclasses import dataclass

from hekla.apps.jobs import selectors
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Job
from hekla.apps.tenancy.models import Tenant
from hekla.domain import secrets
from hekla.domain.jobspec import JobSpec


@dataclass(frozen=True, slots=True)
class JobClone:
    """`secrets`: the names of those that its commands speak of; their values are kept with no copy."""

    spec: JobSpec
    secrets: Sequence[str]


def clone_job(job: Job, tenant: Tenant) -> JobClone:
    """What would be submitted to that tenant to run the job again."""
    return clone_spec(spec_of(job), tenant)


def clone_spec(spec: JobSpec, tenant: Tenant) -> JobClone:
    """The same job under a name that is free in that tenant."""
    named = spec.model_copy(update={"name": selectors.free_name(tenant, spec.name)})
    return JobClone(named, missing_secrets(named))


def missing_secrets(spec: JobSpec) -> list[str]:
    """The secrets that must be given with this job."""
    if "openpai" not in spec.plugins:
        return []
    return sorted(secrets.secret_names(word for task in spec.tasks for word in task.command))
