"""The health of clusters, checked periodically and stored in rows, so pages do not wait for dead servers."""

from django.conf import settings

from hekla.apps.clusters import selectors, services
from hekla.apps.clusters.models import Cluster
from hekla.backends import registry
from hekla.backends.base import Health, HealthProblem
from hekla.backends.kind import BackendContext
from hekla.cluster_access.health import as_facts
from hekla.domain.errors import Invalid
from hekla.lib import clock


def look(cluster: Cluster) -> None:
    """Check the health of one cluster and record it. No effect if its kind has no health check."""
    requested_at, facts = clock.now(), selectors.backend_facts(cluster)
    context = BackendContext(facts["name"], settings.HEKLA_HOME, clock.now, facts["key"], facts["metrics_token"])
    try:
        found = registry.check_health(facts["kind"], facts["config"], context)
    except Invalid as error:
        found = Health(HealthProblem.UNUSABLE, str(error))
    if found is None:
        return
    services.observe_health(cluster, as_facts(found), started_at=requested_at, now=clock.now())
