"""Queries for runs of demonstrations. Runs outside a person's tenants count as not existing."""

from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from hekla.apps import due_work
from hekla.apps.accounts.models import User
from hekla.apps.clusters.models import Cluster
from hekla.apps.demonstrations.models import DemoRun, SimulatedWorkload
from hekla.apps.jobs.models import Job
from hekla.apps.tenancy import selectors as tenancy


def visible_to(user: User) -> QuerySet[DemoRun]:
    """The runs that this person may see, newest first."""
    return DemoRun.objects.filter(tenant__in=tenancy.visible_to(user)).select_related("owner", "tenant").order_by("-id")


def latest(demonstration: str, user: User, without: str) -> DemoRun | None:
    """The newest run without this plugin or action (empty: with all) that the person may see, or None."""
    return visible_to(user).filter(demonstration=demonstration, without=without).first()


def in_progress() -> QuerySet[DemoRun]:
    """Runs that have not ended, oldest first."""
    return DemoRun.objects.filter(ended_at=None).order_by("id")


def in_progress_on(cluster: Cluster) -> DemoRun | None:
    """The run that uses the cluster now, or None; there is at most one."""
    return in_progress().filter(cluster=cluster).first()


def jobs_of(run: DemoRun) -> list[Job]:
    """The jobs of the run in the order of the acts, including deleted ones."""
    return list(run.jobs.select_related("queue", "cluster", "owner", "tenant").order_by("id"))


def workload() -> SimulatedWorkload | None:
    """The everyday work of simulated teams, or None if the platform has none."""
    return SimulatedWorkload.objects.select_related("cluster").first()


def advance_work() -> list[QuerySet[Any, Any]]:
    """Runs that have not ended, and simulated teams that work soon or have jobs to remove (see `due_work`)."""
    jobs = Job.objects.filter(cluster=OuterRef("cluster"), deleted_at=None)
    teams = SimulatedWorkload.objects.filter(next_at__lte=due_work.horizon())
    return [in_progress(), teams.filter(Q(removed_at=None) | Exists(jobs))]
