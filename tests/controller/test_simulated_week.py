"""The history of simulated teams comes from the services, the engine and the controller, and passes their audits.

Then the steady work goes on, within its bounds.
"""

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from tests.support import auditor

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.clusters.models import Cluster
from hekla.apps.demonstrations import mix, workload
from hekla.apps.demonstrations.models import SimulatedWorkload
from hekla.apps.demonstrations.stages import STAGES
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.tenancy.models import Membership, Tenant
from hekla.controller.controllers import controllers
from hekla.domain.resources import Resources
from hekla.launcher import first_data, simulated_week
from hekla.launcher.simulated_week import POLICY, SimulatedHistory
from hekla.lib import clock

NOW, SPAN = datetime(2026, 6, 3, 15, tzinfo=UTC), timedelta(hours=5)

MOST_JOBS = len(mix.RATES) * len(mix.SIZES)  # of one arrival: a sweep


@pytest.fixture(autouse=True)
def home(transactional_db: None, settings: Any, tmp_path: Path) -> None:
    settings.HEKLA_HOME = tmp_path
    controllers.reset()


@pytest.fixture
def row() -> SimulatedWorkload:
    """A workload without a history."""
    return workload.set_up(policy=POLICY, since=clock.now() - SPAN)


def test_history_is_what_the_platform_would_have_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated_week, "MOST_SECONDS", 600.0)
    monkeypatch.setattr(simulated_week, "MOST_CPU_SECONDS", 600.0)
    with clock.simulated(lambda: NOW):
        _check_history(workload.set_up(policy=POLICY, since=NOW - SPAN))


def _check_history(row: SimulatedWorkload) -> None:
    parts: list[float] = []
    SimulatedHistory(row, parts.append).make()
    row.refresh_from_db()
    assert parts == sorted(parts)
    assert row.next_at == row.history_until <= clock.now()
    made = list(Job.objects.all())
    assert {job.phase for job in made} >= {"completed", "running"}
    assert all(row.since <= job.submitted_at < row.history_until for job in made)
    auditor.audit_everything()
    _check_log(row)
    _check_nodes(row.cluster)
    _check_usage(row)


def _check_log(row: SimulatedWorkload) -> None:
    """Events of a job are in order; others are late by no more than it takes to notice the end of a pod."""
    found = list(LoggedEvent.objects.order_by("id"))
    by_subject = defaultdict[str, list[datetime]](list)
    for event in found:
        by_subject[event.subject].append(event.at)
    assert all(times == sorted(times) for times in by_subject.values())
    assert max(before.at - after.at for before, after in pairwise(found)) < timedelta(minutes=1)
    assert found[0].at == row.since
    assert found[-1].at <= row.history_until


def _check_nodes(cluster: Cluster) -> None:
    """At no time do the pods on a node request more than it has."""
    changes = defaultdict[str, list[tuple[datetime, bool, Resources]]](list)
    for pod in Pod.objects.exclude(bound_at=None).select_related("job"):
        request = spec_of(pod.job).task(pod.task).request
        changes[pod.node].append((pod.bound_at, True, request))
        if pod.finished_at:
            changes[pod.node].append((pod.finished_at, False, request))
    whole = Resources.parse(cluster.config["nodes"][0]["allocatable"])
    for ones in changes.values():
        held = Resources()
        for _at, begins, request in sorted(ones, key=lambda one: one[:2]):
            held = held + request if begins else held - request
            assert held.fits_in(whole)


def _check_usage(row: SimulatedWorkload) -> None:
    """The curve of the home page is the number of pods between their bind and their end."""
    step = timedelta(minutes=15)
    curve = jobs.placed_pods_over_time([row.cluster_id], since=row.since, step=step)
    pods = list(Pod.objects.exclude(bound_at=None))
    for at, most, last in curve:
        end = at + step
        assert most >= last
        assert last == sum(pod.bound_at < end and (not pod.finished_at or pod.finished_at >= end) for pod in pods)
    assert max(change.most for change in curve) > 0


def test_platform_with_a_history_begins_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated_week, "WEEK", timedelta(minutes=1))
    joined = Membership.objects.filter(user__username=first_data.ADMIN, tenant__slug__in=[t.slug for t in mix.TEAMS])
    for _ in range(2):
        assert first_data.prepare(demo=True)["username"] == first_data.ADMIN
        left, _by_model = joined.delete()
    assert left == 0  # an admin who left the teams is not added again
    assert list(LoggedEvent.objects.order_by("id")[:1].values_list("kind", flat=True)) == ["ClusterCreated"]
    names = Job.objects.values_list("tenant__slug", flat=True)
    assert {*names} <= {team.slug for team in mix.TEAMS}
    there = set(Cluster.objects.values_list("name", flat=True))
    assert there == {stage.name for stage in STAGES} | {workload.CLUSTER, "local"}


def test_interrupted_history_goes_on_where_it_ended(row: SimulatedWorkload) -> None:
    def interrupt(part: float) -> None:
        if part >= 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        SimulatedHistory(row, interrupt).make()
    before, number = Job.objects.count(), LoggedEvent.objects.latest("id").pk
    reached = workload.made_until(row)
    assert before > 0
    assert row.since < reached < clock.now()
    SimulatedHistory(row, lambda _part: None).make()
    row.refresh_from_db()
    assert row.history_until is not None
    names = list(Job.objects.values_list("name", flat=True))
    assert len(names) == len({*names}) > before
    assert not LoggedEvent.objects.filter(pk__gt=number, at__lt=reached).exists()


def test_ending_jobs_are_ended_once(row: SimulatedWorkload) -> None:
    now = clock.now()
    workload.end_history(row, now=now)
    workload.advance(now=now)
    workload.remove(actor=PLATFORM, now=now)
    Job.objects.update(phase="terminating")
    number = LoggedEvent.objects.latest("id").pk
    assert workload.advance(now=now) == now + timedelta(seconds=1)
    assert not LoggedEvent.objects.filter(pk__gt=number).exists()


def test_steady_work_is_bounded(row: SimulatedWorkload, monkeypatch: pytest.MonkeyPatch) -> None:
    now = clock.now()
    assert workload.advance(now=now) is None, "not before there is a history"
    workload.end_history(row, now=now)
    monkeypatch.setattr(workload, "MOST_UNFINISHED", 5)
    at = now
    for _ in range(12):
        next_at = workload.advance(now=at)
        assert next_at is not None
        assert at < next_at <= at + 3 * mix.GAP
        assert workload.advance(now=next_at - timedelta(seconds=1)) == next_at, "it is not due yet"
        at = next_at
    assert 5 <= Job.objects.count() < 5 + MOST_JOBS
    row.refresh_from_db()
    assert row.count == 12
    before = Job.objects.count()
    later = at + timedelta(days=3)
    Job.objects.update(phase="completed")
    workload.advance(now=later)
    assert Job.objects.count() <= before + MOST_JOBS, "what was missed while it was off is not made up for"
    assert all(spec_of(job).ttl_seconds_after_finished for job in Job.objects.all())
    Cluster.objects.filter(pk=row.cluster_id).update(is_paused=True)
    count = Job.objects.count()
    workload.advance(now=later + timedelta(days=1))
    assert Job.objects.count() == count, "a paused cluster gets no work"


def test_removed_workload_ends_its_jobs(row: SimulatedWorkload, client: Client) -> None:
    now = clock.now()
    workload.end_history(row, now=now)
    workload.advance(now=now)
    assert Job.objects.count() > 0
    ada = accounts.create_user(username="ada", password=None, platform_role="admin", actor=PLATFORM, now=now)
    client.force_login(ada)
    assert "Remove the simulated teams" in client.get(reverse("demonstrations:list")).content.decode()
    client.post(reverse("demonstrations:remove_workload"))
    at = clock.now()
    while workload.advance(now=at) is not None:
        assert at < now + timedelta(seconds=30)
        at += timedelta(seconds=1)
    assert LoggedEvent.objects.filter(kind="SimulatedTeamsRemoved").get().actor_name == "ada"
    assert not Job.objects.filter(deleted_at=None).exists()
    assert not Tenant.objects.filter(is_active=True).exists()
    assert list(User.objects.filter(is_active=True)) == [ada]
    assert "Remove the simulated teams" not in client.get(reverse("demonstrations:list")).content.decode()
