"""Move the pods of a cluster to other namespaces, by a change of its configuration.

The new configuration does not find what the present one created. So a change is allowed only without live pods and, if
the objects that ended pods leave behind would not be found either, only without such objects.
"""

from collections.abc import Callable, Mapping
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
    """Raise Invalid if objects would be left behind, or if the backend cannot be queried for them."""
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


def require_no_live_pods(cluster: Cluster, config: Config) -> None:
    """Raise Invalid while pods are alive. Call it inside the transaction that changes the configuration.

    Revokes the lease of the cluster, so its holder starts no more pods in the former namespaces.
    """
    if not _says(layout.moves_pods, cluster, config):
        return
    leases.revoke(cluster)
    if jobs.has_placed_pods(cluster):
        raise _refusal(_("Pods of this cluster are running and would be lost. Wait until its jobs have finished."))


def _says(question: Callable[[Config, Config], bool], cluster: Cluster, config: Config) -> bool:
    """Whether the check applies to this change; False for an invalid configuration, which never created a pod."""
    if cluster.kind != Cluster.Kind.KUBERNETES:
        return False
    try:
        return question(cluster.config, config)
    except Invalid:
        return False


def _refusal(sentence: str) -> Invalid:
    return Invalid([Problem("config", sentence)])
