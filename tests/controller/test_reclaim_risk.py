"""Reclaim risk: the predicted number of evictions is what the scheduler then evicts."""

from django.test import Client
from django.urls import reverse
from tests.controller.conftest import World
from tests.controller.test_sharing import ELASTIC, Gpus, evicted, gpus, settle, submit

from hekla.apps.clusters import services as clusters
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.queues import services as queues
from hekla.apps.queues.models import Queue
from hekla.apps.tenancy import services as tenancy
from hekla.lib import clock
from hekla.simulation import reclaim_risk

__all__ = ["gpus"]


def other_queue(world: World) -> None:
    queues.create(cluster=world.cluster, name="queue2", actor=PLATFORM, now=clock.now())


def test_prediction_equals_the_actual_evictions(gpus: Gpus) -> None:
    world = gpus(ELASTIC, 5, 5)
    other_queue(world)
    first = submit(world, "job1-1", 10, 5)
    settle(world, {first: 10})
    before = reclaim_risk.of(first, now=clock.now())
    assert (before.pods, before.now, before.most, before.is_safe, before.claimants) == (10, 0, 5, "", ())
    second = submit(world, "job2-1", 10, 5, queue="queue2")
    settle(world, {first: 5, second: 5})
    assert len(evicted(first)) == before.most
    after = reclaim_risk.of(first, now=clock.now())
    assert (after.pods, after.now, after.most) == (5, 0, 0)


def test_claimants_are_listed_and_minimums_are_protected(gpus: Gpus) -> None:
    world = gpus(ELASTIC, 4)
    other_queue(world)
    first = submit(world, "whole", 4)
    settle(world, {first: 4})
    waiting = submit(world, "wants", 2, queue="queue2")
    world.reconcile_until(lambda: waiting.pods.count() == 2)
    found = reclaim_risk.of(first, now=clock.now())
    assert (found.now, found.most) == (2, 0)
    assert [(one.queue, one.share, one.pods) for one in found.claimants] == [("queue2", 0.0, 2)]
    other_tenant = tenancy.create(slug="theirs", name="Theirs", actor=PLATFORM, now=clock.now())
    Queue.objects.get(name="queue2").tenants.add(other_tenant)
    (hidden,) = reclaim_risk.visible_risk(world.alice, first, now=clock.now()).claimants
    assert (hidden.queue, hidden.pods) == ("", 2)


def test_job_that_is_never_evicted_is_safe(gpus: Gpus) -> None:
    world = gpus(ELASTIC, 4)
    job = submit(world, "careful", 4, 2, annotations={"volcano.sh/preemptable": "false"})
    assert reclaim_risk.of(job, now=clock.now()).is_safe == "job_keeps"
    waiting = submit(world, "large", 4)
    assert reclaim_risk.of(waiting, now=clock.now()).is_safe == "no_place"
    policy = ELASTIC.replace(", preempt, reclaim", "")
    clusters.set_policy(world.cluster, policy, note="", by=world.alice, actor=PLATFORM, now=clock.now())
    assert reclaim_risk.of(waiting, now=clock.now()).is_safe == "no_reclaim"


def test_page_and_api_show_the_risk(gpus: Gpus) -> None:
    world = gpus(ELASTIC, 4)
    other_queue(world)
    first = submit(world, "elastic", 4, 2)
    settle(world, {first: 4})
    client = Client()
    client.force_login(world.alice, backend="django.contrib.auth.backends.ModelBackend")
    page = client.get(reverse("exposure", args=[first.uid])).content.decode()
    assert "When another queue reclaims its share, up to 2 of its 4 pods are evicted." in page
    risk = client.get(reverse("api:v1:job_exposure", args=[first.uid])).json()
    assert (risk["pods"], risk["now"], risk["most"]) == (4, 0, 2)
