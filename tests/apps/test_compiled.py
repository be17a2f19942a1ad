"""Queries that are compiled once return what Django returns."""

from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.db.models import F, QuerySet, Value
from django.db.transaction import TransactionManagementError
from django.test.utils import CaptureQueriesContext
from tests.apps.conftest import People

from hekla.apps.clusters.models import Cluster
from hekla.apps.compiled import CompiledQuery, CompiledValues, OneOf, Parameter
from hekla.apps.jobs import job_rows, selectors
from hekla.apps.jobs.models import Job

_UID = Job._meta.get_field("uid")
FOUND = CompiledQuery(
    lambda: (
        Job.objects.filter(OneOf("uid", "uids", _UID), phase=Parameter("phase", Job._meta.get_field("phase")))
        .select_related("queue__cluster", "owner")
        .only("uid", "spec", "submitted_at", "queue__name", "queue__cluster__config", "owner__username")
        .order_by("-id")
    )
)


def state(row: object) -> dict[str, object]:
    return {name: value for name, value in vars(row).items() if name != "_state"}


def test_objects_are_those_that_django_makes(people: People) -> None:
    jobs = [people.submit("one"), people.submit("two")]
    people.submit("three")
    uids = [job.uid for job in jobs]
    expected = (
        Job.objects.filter(uid__in=uids, phase="pending")
        .select_related("queue__cluster", "owner")
        .only("uid", "spec", "submitted_at", "queue__name", "queue__cluster__config", "owner__username")
        .order_by("-id")
    )
    with CaptureQueriesContext(
        connection,
    ) as queries:
        found = FOUND.rows(uids=uids, phase="pending")
        assert [job.pk for job in found] == [jobs[1].pk, jobs[0].pk]
        for mine, other in zip(found, list(expected), strict=True):
            assert state(mine) == state(other)
            assert mine.get_deferred_fields() == other.get_deferred_fields() != set()
            assert (mine._state.db, mine._state.adding) == (other._state.db, other._state.adding)
            assert state(mine.queue) == state(other.queue)
            assert state(mine.queue.cluster) == state(other.queue.cluster)
            assert state(mine.owner) == state(other.owner)
    assert len(queries) == 2


def test_each_call_has_its_own_values(people: People) -> None:
    one, two = people.submit("one"), people.submit("two")
    assert FOUND.rows(uids=[one.uid], phase="pending") == [one]
    assert FOUND.rows(uids=[two.uid], phase="pending") == [two]
    assert FOUND.rows(uids=[], phase="pending") == FOUND.rows(uids=[one.uid], phase="running") == []


def test_jobs_of_another_cluster_are_not_locked(people: People) -> None:
    job = people.submit()
    other = Cluster.objects.create(name="other", kind="simulated", config={}, created_at=job.submitted_at)
    assert job_rows.locked_in_order(people.cluster.pk, [job.pk, 0]) == {job.pk: job}
    assert job_rows.locked_in_order(other.pk, [job.pk]) == {}
    assert selectors.by_uids(other.pk, [str(job.uid)]) == []


@pytest.mark.django_db(transaction=True)
def test_rows_are_locked_only_inside_a_transaction() -> None:
    for _ in range(2):  # also when the query is compiled already
        with pytest.raises(TransactionManagementError):
            job_rows.locked(1)


def test_rows_among_those_that_another_query_finds_share_their_objects(people: People) -> None:
    jobs = [people.submit("one"), people.submit("two")]
    people.submit("three")
    found = Job.objects.filter(name__in=["one", "two"])
    listed = selectors.listed(found.order_by("-submitted_at", "-pk")[:5])
    assert listed == [jobs[1], jobs[0]]
    assert selectors.listed(found.order_by("name", "pk")) == jobs
    assert selectors.listed(found.order_by("name", "pk")[:1]) == jobs[:1]
    assert selectors.listed(Job.objects.none()) == []
    with CaptureQueriesContext(connection) as queries:
        for job in listed:
            whole = Job.objects.get(pk=job.pk)
            for name in ("tenant", "queue", "cluster", "owner"):
                assert getattr(job, name) == getattr(whole, name)
            assert job.cluster.config == whole.cluster.config
    assert len(queries) == 2 * 5
    assert listed[0].queue is listed[1].queue


def test_tuples_are_those_that_django_reads(people: People) -> None:
    one, two = people.submit("one"), people.submit("two")
    people.submit("three")

    def named(uid: object, name: object) -> QuerySet[Job, tuple[str, UUID, list[Any]]]:
        jobs = Job.objects.order_by().annotate(word=Value("job"), tasks=F("spec__tasks"))
        found = jobs.filter(uid=uid).values_list("word", "uid", "tasks")
        return found.union(jobs.filter(name=name).values_list("word", "uid", "tasks"))

    compiled = CompiledValues(
        lambda: named(Parameter("uid", _UID), Parameter("name", Job._meta.get_field("name"))),
    )
    rows = compiled.rows(uid=one.uid, name="two")
    assert sorted(rows) == sorted(named(one.uid, "two"))
    assert {uid: tasks for _word, uid, tasks in rows} == {job.uid: job.spec["tasks"] for job in (one, two)}
    assert compiled.rows(uid=UUID(int=1), name="four") == []
