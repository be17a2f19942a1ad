"""What is wrong with the controller of a cluster: one sentence for all pages, REST and the command line."""

from datetime import timedelta

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hekla.apps.clusters import leases, selectors
from hekla.apps.clusters.models import Cluster, Lease
from hekla.apps.sentences import together
from hekla.lib import clock

_MOST = 5
_MINUTES_FROM = timedelta(minutes=5)


def of_cluster(cluster: Cluster) -> str:
    """Why nothing new may start in the cluster; empty if its controller works, or if it is paused.

    No query if the lease is loaded with the cluster.
    """
    lease: Lease | None = getattr(cluster, "lease", None)
    silent_for = leases.unrenewed_for(cluster, lease, now=clock.now())
    if cluster.is_paused:
        return ""
    if silent_for >= leases.SILENT_AFTER:
        return _silence(cluster.name, silent_for)
    if lease is not None and lease.fault:
        sentence = _("The controller of cluster %(name)s meets an unexpected error and keeps trying.")
        return together([sentence % {"name": cluster.name}, _("Running pods continue; new ones may not start.")])
    return ""


def everywhere() -> list[str]:
    """The notices of all clusters, in one query. If there are many, the last one is the number of the rest."""
    found = [sentence for cluster in selectors.troubled() if (sentence := of_cluster(cluster))]
    if (left := len(found) - _MOST) <= 0:
        return found
    rest = ngettext("%(n)d more cluster has such a problem.", "%(n)d more clusters have such a problem.", left)
    return [*found[:_MOST], rest % {"n": left}]


def _silence(name: str, silent_for: timedelta) -> str:
    seconds = int(silent_for.total_seconds())
    if silent_for < _MINUTES_FROM:
        sentence = _("The controller of cluster %(name)s has not reported for %(count)d s.")
    else:
        seconds, sentence = seconds // 60, _("The controller of cluster %(name)s has not reported for %(count)d min.")
    return together([sentence % {"name": name, "count": seconds}, _("Running pods continue; nothing new starts.")])
