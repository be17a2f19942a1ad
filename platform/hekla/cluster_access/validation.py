"""Check and save a new or changed cluster.

Problems that the backend finds are reported at their fields. A cluster that does not answer, or lacks permissions, can
still be saved: the caller skips `require_healthy`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.accounts.services import actor_of
from hekla.apps.clusters import selectors, services
from hekla.apps.clusters.models import Cluster
from hekla.apps.clusters.services import Key
from hekla.apps.event_log.services import unit_of_work
from hekla.apps.sentences import together
from hekla.backends import registry
from hekla.backends.base import BackendError, Health, HealthProblem
from hekla.backends.kind import BackendContext
from hekla.cluster_access import namespace_change
from hekla.cluster_access.health import as_facts, describe_trouble, is_healthy
from hekla.domain.errors import Invalid, Problem
from hekla.lib import clock


@dataclass(frozen=True, slots=True)
class ClusterDraft:
    """A cluster before it is saved. `row`: its new fields. `cluster`: the existing cluster, if any.

    `key`: new credentials. `drops_key`: remove the stored ones. With neither, they stay. `field`: the field at which
    connection problems are reported.
    """

    row: Mapping[str, Any]
    cluster: Cluster | None = None
    key: Key | None = None
    drops_key: bool = False
    field: str = "config"

    @property
    def kind(self) -> str:
        return self.cluster.kind if self.cluster else str(self.row["kind"])

    @property
    def name(self) -> str:
        return self.cluster.name if self.cluster else str(self.row["name"])

    @property
    def config(self) -> dict[str, Any]:
        found: dict[str, Any] = self.row["config"]
        return found

    @property
    def is_reached_as_before(self) -> bool:
        stays = self.cluster is not None and self.cluster.config == self.config
        return stays and self.key is None and not self.drops_key


def probe(draft: ClusterDraft, *, always: bool = False) -> Health | None:
    """Check the health of the cluster. Raises Invalid if the configuration or the credentials can never work.

    None without a check: its kind has no health check, or access did not change and `always` is not set.
    """
    if draft.is_reached_as_before and not always:
        return None
    if not registry.reports_health(draft.kind):
        _require_answer(draft)
        return None
    try:
        found = registry.check_health(draft.kind, draft.config, _context(draft))
    except Invalid as error:
        raise _at_the_configuration(error) from error
    if found and found.problem is HealthProblem.UNUSABLE:
        raise Invalid([Problem(draft.field, found.detail)])
    return found


def require_healthy(draft: ClusterDraft, found: Health | None) -> None:
    """Raise Invalid if the health check, where there was one, found a problem."""
    if found is None or is_healthy(found):
        return
    if found.problem:
        raise Invalid([Problem(draft.field, together([describe_trouble(found.problem), found.detail]))])
    raise Invalid([Problem("", _("Not saved: the cluster setup is incomplete."))])


def save(draft: ClusterDraft, found: Health | None, *, by: User, now: datetime) -> Cluster:
    """Save the cluster, and record its health.

    Raises Refused if the name of a new cluster is taken, Invalid if existing pods or objects would no longer be found.
    """
    if draft.cluster:
        namespace_change.require_nothing_left(draft.cluster, draft.config)
    doing: dict[str, Any] = {"actor": actor_of(by), "now": now}
    with unit_of_work():
        cluster = draft.cluster or services.create(**draft.row, **doing)
        if draft.cluster:
            namespace_change.require_no_live_pods(draft.cluster, draft.config)
            services.change(cluster, draft.row, **doing)
        if draft.key:
            services.give_key(cluster, draft.key, by=by, **doing)
        if draft.drops_key:
            services.remove_key(cluster, **doing)
    if found:
        services.observe_health(cluster, as_facts(found), started_at=clock.now(), now=clock.now())
    return cluster


def _context(draft: ClusterDraft) -> BackendContext:
    return BackendContext(draft.name, settings.HEKLA_HOME, clock.now, _key_text(draft), _metrics_token(draft))


def _metrics_token(draft: ClusterDraft) -> str:
    """The stored token, if the draft names the server that it is for; to another one it is never sent."""
    if draft.cluster is None:
        return ""
    stays = selectors.metrics_address(draft.cluster.config) == selectors.metrics_address(draft.config)
    return selectors.backend_facts(draft.cluster)["metrics_token"] if stays else ""


def _key_text(draft: ClusterDraft) -> str | None:
    if draft.key:
        return draft.key.text
    return None if draft.cluster is None or draft.drops_key else selectors.backend_facts(draft.cluster)["key"]


def _require_answer(draft: ClusterDraft) -> None:
    """Raise Invalid, at the field of the configuration, if the backend cannot list its nodes."""
    try:
        backend = registry.open_backend(draft.kind, draft.config, _context(draft))
    except Invalid as error:
        raise _at_the_configuration(error) from error
    try:
        backend.nodes()
    except BackendError as error:
        raise Invalid([Problem("config", str(error))]) from error
    finally:
        backend.close()


def _at_the_configuration(error: Invalid) -> Invalid:
    problems = (f"{problem.path.removeprefix('config.')}: {problem.message}" for problem in error.problems)
    return Invalid([Problem("config", sentence) for sentence in problems])
