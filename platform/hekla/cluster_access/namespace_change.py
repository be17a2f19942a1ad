"""Another place for the pods of a cluster: in other namespaces than before.

What the present configuration made would not be found by another one. So a change waits until no pod is alive, and,
where what pods left would not be found either, until that is gone too.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from hekla.apps.clusters import leases
from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Cluster
from hekla.apps.jobs import selectors as jobs
from hekla.backends.base import BackendError
from hekla.backends.kubernetes import layout
from hekla.backends.pool import get_backend
from hekla.domain.errors import Invalid, Problem

Config = Mapping[str, Any]


def require_nothing_left(cluster: Cluster, config: Config) -> None:
    """Raises Invalid where something would be left behind, or where that cannot be asked."""
    if not _says(layout.leaves_objects_behind, cluster, config):
        return
    try:
        left = get_backend(**clusters.backend_facts(cluster), home=settings.HEKLA_HOME).inventory().present
    except BackendError as error:
        sentence = _("Cannot check for resources in the current namespace: %(why)s")
        raise _refusal(sentence % {"why": error}) from error
    if left:
        sentence = _(
            "The current namespace has resources of %(count)d jobs, which would stay there. Delete these jobs first."
        )
        raise _refusal(sentence % {"count": len(left)})


def require_nobody_there(cluster: Cluster, config: Config, *, now: datetime) -> None:
    """Inside the transaction that changes it. Raises Invalid while pods are alive.

    The lease is taken from whoever has it: what they were about to start they do not start in the former place.
    """
    if not _says(layout.moves_pods, cluster, config):
        return
    leases.revoke(cluster, now=now)
    if jobs.has_placed_pods(cluster):
        raise _refusal(_("Pods of this cluster are running and would be lost. Wait until its jobs have finished."))


def _says(question: Callable[[Config, Config], bool], cluster: Cluster, config: Config) -> bool:
    """By a configuration that nobody can read no pod was ever made."""
    if cluster.kind != Cluster.Kind.KUBERNETES:
        return False
    try:
        return question(cluster.config, config)
    except Invalid:
        return False


def _refusal(sentence: str) -> Invalid:
    return Invalid([Problem("config", sentence)])
