"""The backend of a cluster, for the controller."""

from django.conf import settings

from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Cluster
from hekla.backends.base import Backend
from hekla.backends.pool import get_backend


def backend_of(cluster: Cluster) -> Backend:
    """The open backend of this cluster. Raises Invalid if its configuration is wrong."""
    return get_backend(**clusters.backend_facts(cluster), home=settings.HEKLA_HOME)
