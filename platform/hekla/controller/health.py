"""How clusters are, asked every so often and kept in rows, so that no page waits for a server that is dead."""

from django.conf import settings

from hekla.apps.clusters import selectors, services
from hekla.apps.clusters.models import Cluster
from hekla.backends import registry
from hekla.backends.base import Health, Trouble
from hekla.cluster_access.health import as_facts
from hekla.domain.errors import Invalid
from hekla.lib import clock


def look(cluster: Cluster) -> None:
    """Ask one cluster and take down what it says; nothing is done where its kind tells nothing."""
    asked_at, facts = clock.now(), selectors.backend_facts(cluster)
    if not registry.tells_health(facts["kind"]):
        return
    try:
        found = registry.health(facts["kind"], config=facts["config"], home=settings.HEKLA_HOME, key=facts["key"])
    except Invalid as error:
        found = Health(Trouble.UNUSABLE, str(error))
    services.observe_health(cluster, as_facts(found), asked_at=asked_at, now=clock.now())
