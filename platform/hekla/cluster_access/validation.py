"""A cluster as somebody wants it: tried, and saved.

What its backend makes of it is told at the field. A cluster that does not answer now, or where rights are missing, is
saved when that is asked for once more.
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
    """See the module. `row`: the cluster's own fields as they would be; `cluster`: the one that there is.

    `key`: one that was given now; `drops_key`: none is to be kept; else all stays. `field`: where it is told that the
    cluster cannot be reached in this way.
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
    """What the cluster answers at this moment; None where it is not asked: its kind tells nothing of its health, or it
    is reached as before and need not be asked `always`. Raises Invalid for what can never lead anywhere.
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
    """Nothing is missing there, as far as it was asked. Raises Invalid."""
    if found is None or is_healthy(found):
        return
    if found.problem:
        raise Invalid([Problem(draft.field, together([describe_trouble(found.problem), found.detail]))])
    raise Invalid([Problem("", _("Not saved: the cluster setup is incomplete."))])


def save(draft: ClusterDraft, found: Health | None, *, by: User, now: datetime) -> Cluster:
    """Save it, and take down what it answered.

    Raises Refused where the name of a new one is taken, Invalid where pods would not be found any more.
    """
    if draft.cluster:
        namespace_change.require_nothing_left(draft.cluster, draft.config)
    doing: dict[str, Any] = {"actor": actor_of(by), "now": now}
    with unit_of_work():
        cluster = draft.cluster or services.create(**draft.row, **doing)
        if draft.cluster:
            namespace_change.require_nobody_there(draft.cluster, draft.config, now=now)
            services.change(cluster, draft.row, **doing)
        if draft.key:
            services.give_key(cluster, draft.key, by=by, **doing)
        if draft.drops_key:
            services.remove_key(cluster, **doing)
    if found:
        services.observe_health(cluster, as_facts(found), started_at=clock.now(), now=clock.now())
    return cluster


def _context(draft: ClusterDraft) -> BackendContext:
    return BackendContext(draft.name, settings.HEKLA_HOME, clock.now, _key_text(draft))


def _key_text(draft: ClusterDraft) -> str | None:
    if draft.key:
        return draft.key.text
    return None if draft.cluster is None or draft.drops_key else selectors.backend_facts(draft.cluster)["key"]


def _require_answer(draft: ClusterDraft) -> None:
    """Its machines can be told. Raises Invalid, at the field of the configuration."""
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
