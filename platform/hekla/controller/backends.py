"""The backend of a cluster, as the controller needs it."""

from django.conf import settings

from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Cluster
from hekla.backends.base import Backend
from hekla.backends.pool import get_backend


def backend_of(cluster: Cluster) -> Backend:
    """The backend of this cluster, kept open. Raises Invalid where its configuration is wrong."""
    return get_backend(**clusters.backend_facts(cluster), home=settings.HEKLA_HOME)
