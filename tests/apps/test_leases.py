"""Cluster leases: one controller per cluster, and a stale controller cannot write."""

from datetime import timedelta
from threading import Event, Thread

import pytest
from django.db import DatabaseError, connection
from django.db.models import F
from django.db.models.functions import Now

from hekla.apps.clusters import leases, services
from hekla.apps.clusters.models import Cluster, Lease, NodeFacts
from hekla.apps.event_log.services import PLATFORM, unit_of_work
from hekla.apps.jobs.services.decisions import JobDecision, commit
from hekla.lib import clock

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def cluster() -> Cluster:
    return services.create(name="c", kind="simulated", config={}, actor=PLATFORM, now=clock.now())


def expire() -> None:
    """The holder has not renewed its lease for a lifetime."""
    Lease.objects.update(expires_at=Now())


def test_lease_has_one_holder(cluster: Cluster) -> None:
    now = clock.now()
    assert leases.take(cluster, "a", now=now) == 1
    assert leases.take(cluster, "b", now=now) is None
    assert leases.take(cluster, "a", now=now) == 1


def test_expired_lease_gets_a_new_epoch(cluster: Cluster) -> None:
    now = clock.now()
    leases.take(cluster, "a", now=now)
    expire()
    assert leases.take(cluster, "b", now=now) == 2


@pytest.mark.parametrize("hours", [-1, 0, 1])
def test_host_with_another_clock_neither_takes_nor_loses_a_held_lease(cluster: Cluster, hours: int) -> None:
    now, theirs = clock.now(), clock.now() + timedelta(hours=hours)
    assert leases.take(cluster, "here", now=now) == 1
    assert leases.take(cluster, "there", now=theirs) is None
    leases.renew(cluster.pk, 1)
    expire()
    assert leases.take(cluster, "there", now=theirs) == 2
    assert leases.take(cluster, "here", now=now) is None
    expire()
    assert leases.take(cluster, "here", now=now) == 3


def test_lease_lasts_for_its_lifetime_since_the_last_renewal(cluster: Cluster) -> None:
    leases.take(cluster, "a", now=clock.now())
    Lease.objects.update(expires_at=Now() + timedelta(seconds=1))
    leases.renew(cluster.pk, 1)
    left = Lease.objects.annotate(left=F("expires_at") - Now()).values_list("left", flat=True).get()
    assert leases.LIFETIME - timedelta(seconds=2) < left <= leases.LIFETIME


def test_released_lease_is_free_at_once(cluster: Cluster) -> None:
    now = clock.now()
    leases.take(cluster, "a", now=now)
    leases.release("a")
    assert leases.take(cluster, "b", now=now) == 2


def test_stale_epoch_cannot_write(cluster: Cluster) -> None:
    now = clock.now()
    stale = leases.take(cluster, "a", now=now)
    expire()
    leases.take(cluster, "b", now=now)
    with pytest.raises(leases.LeaseLost):
        commit(cluster.pk, stale, [JobDecision(job_id=1, version=1)], now=now)
    with unit_of_work():
        leases.assert_held(cluster.pk, 2)


def test_assert_held_needs_a_transaction(cluster: Cluster) -> None:
    with pytest.raises(RuntimeError):
        leases.assert_held(cluster.pk, 1)


def test_frozen_holder_does_not_block_a_takeover(cluster, monkeypatch):
    monkeypatch.setattr(leases, "_PATIENCE", "500")  # milliseconds
    now = clock.now()
    epoch = leases.take(cluster, "a", now=now)
    is_writing, may_go_on, lost = Event(), Event(), []

    def write() -> None:
        try:
            with unit_of_work():
                leases.assert_held(cluster.pk, epoch)
                is_writing.set()
                may_go_on.wait(60)
                services.observe_nodes(cluster, [NodeFacts("n", {}, {})], now=now, epoch=epoch)
        except DatabaseError as error:
            lost.append(error)
        finally:
            connection.close()

    holder = Thread(target=write)
    holder.start()
    assert is_writing.wait(60)
    expire()
    assert leases.take(cluster, "b", now=now) == epoch + 1
    may_go_on.set()
    holder.join(60)
    assert len(lost) == 1
    assert not cluster.nodes.exists()


def test_only_the_holder_observes_nodes(cluster):
    now = clock.now()
    stale = leases.take(cluster, "a", now=now)
    expire()
    leases.take(cluster, "b", now=now)
    with pytest.raises(leases.LeaseLost):
        services.observe_nodes(cluster, [NodeFacts("n", {}, {})], now=now, epoch=stale)


def test_renewed_lease_is_held_until_release(cluster):
    now = clock.now()
    epoch = leases.take(cluster, "a", now=now)
    leases.renew(cluster.pk, epoch)
    assert leases.take(cluster, "b", now=now) is None
    leases.release("a")
    with pytest.raises(leases.LeaseLost):
        leases.renew(cluster.pk, epoch)
    assert leases.take(cluster, "b", now=now) == epoch + 1
