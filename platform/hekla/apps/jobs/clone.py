"""Clones of jobs, under a free name, with the secrets that must be entered again."""

from collections.abc import Sequence
from dataclasses import dataclass

from hekla.apps.jobs import selectors
from hekla.apps.jobs.facts import valid_spec
from hekla.apps.jobs.models import Job
from hekla.apps.tenancy.models import Tenant
from hekla.domain import secrets
from hekla.domain.jobspec import JobSpec


@dataclass(frozen=True, slots=True)
class JobClone:
    """A job to submit again. `secrets`: the names of the secrets in its commands; clones have no values of secrets."""

    spec: JobSpec
    secrets: Sequence[str]


def clone_job(job: Job, tenant: Tenant) -> JobClone:
    """The clone of the job to submit to that tenant."""
    return clone_spec(valid_spec(job), tenant)


def clone_spec(spec: JobSpec, tenant: Tenant) -> JobClone:
    """The same job under a name that is free in the tenant."""
    named = spec.model_copy(update={"name": selectors.free_name(tenant, spec.name)})
    return JobClone(named, missing_secrets(named))


def missing_secrets(spec: JobSpec) -> list[str]:
    """The names of the secrets that must be submitted with this job."""
    if "openpai" not in spec.plugins:
        return []
    return sorted(secrets.secret_names(word for task in spec.tasks for word in task.command))
