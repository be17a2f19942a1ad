"""The cache of specifications contains what was committed, and nothing else."""

import pytest
from django.db import transaction
from tests.apps.conftest import People

from hekla.apps.jobs import facts
from hekla.apps.jobs.models import Job


def write(job: Job, replicas: int) -> None:
    """Store another size as the next revision."""
    (task,) = job.spec["tasks"]
    spec = {**job.spec, "tasks": [{**task, "replicas": replicas}]}
    Job.objects.filter(pk=job.pk).update(spec=spec, revision=job.revision + 1)


def replicas(job: Job) -> int:
    """The size by the specification of the row, read again."""
    return facts.spec_of(Job.objects.get(pk=job.pk)).replicas


def test_specification_that_was_rolled_back_is_not_cached(people: People) -> None:
    job = people.submit()
    with transaction.atomic():
        write(job, 5)
        assert replicas(job) == 5
        transaction.set_rollback(True)
    write(job, 7)
    assert replicas(job) == 7


def test_row_is_parsed_once_within_a_transaction(people: People) -> None:
    job = Job.objects.get(pk=people.submit().pk)
    assert facts.spec_of(job) is facts.spec_of(job)
    job.revision += 1
    job.spec = {**job.spec, "name": "other"}
    assert facts.spec_of(job).name == "other"


@pytest.mark.django_db(transaction=True)
def test_committed_specification_is_parsed_once(transactional_db: None, request: pytest.FixtureRequest) -> None:
    people: People = request.getfixturevalue("people")
    job = people.submit()
    assert facts.spec_of(Job.objects.get(pk=job.pk)) is facts.spec_of(Job.objects.get(pk=job.pk))
    with transaction.atomic():
        write(job, 3)
        assert replicas(job) == 3
    assert facts.spec_of(Job.objects.get(pk=job.pk)) is facts.spec_of(Job.objects.get(pk=job.pk))
