"""Celery turns the controller; every task is one call that may be repeated or lost."""

from celery import shared_task

from hekla.apps.clusters import selectors as clusters
from hekla.apps.jobs import selectors as jobs
from hekla.apps.wakeups import Wakeup
from hekla.backends import registry
from hekla.controller import health
from hekla.controller.controllers import controllers
from hekla.domain.errors import NotFound
from hekla.simulation import federation, forecasting

moving = Wakeup("hekla.spans.move")
_MOVE_SECONDS = 5.0


@shared_task(name="hekla.controller.turn")
def turn(cluster_id: int) -> None:
    """One turn of one cluster."""
    try:
        controllers.reconcile(clusters.by_id(cluster_id))
    except NotFound:
        return


@shared_task(name="hekla.controller.tick")
def tick() -> None:
    """The beat: a turn of every cluster, whether somebody asked or not. One that does not answer holds up no other."""
    for cluster in clusters.active():
        turn.apply_async(args=(cluster.pk,), expires=2)


@shared_task(name="hekla.health.look")
def look(cluster_id: int) -> None:
    """Ask one cluster how it is."""
    try:
        health.look(clusters.by_id(cluster_id))
    except NotFound:
        return


@shared_task(name="hekla.health.look_around")
def look_around() -> None:
    """The beat: ask every cluster, also those that are paused. One that does not answer holds up no other."""
    for cluster in clusters.all_clusters():
        if registry.reports_health(cluster.kind):
            look.apply_async(args=(cluster.pk,), expires=25)


@shared_task(name="hekla.controller.foretell")
def foretell() -> None:
    """Keep what can be said of jobs that began to wait, so that it can be told how well such times held."""
    for cluster in clusters.active():
        forecasting.record(cluster)


@shared_task(name="hekla.spans.move")
def move() -> None:
    """Jobs that wait in one of several clusters go where they would start now."""
    federation.move_waiting()
    if jobs.movable().exists():
        moving.after(_MOVE_SECONDS)
