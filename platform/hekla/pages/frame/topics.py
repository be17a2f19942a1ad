"""Topics and audiences that live views of several features share."""

from uuid import UUID

from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.clusters import selectors as clusters
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.selectors import RoleSnapshot
from hekla.domain.errors import NotFound
from hekla.live.registry import Params

MACHINES = frozenset({"machines"})


def uid_of(params: Params) -> UUID:
    try:
        return UUID(params.get("uid", ""))
    except ValueError as error:
        raise NotFound(_("Unknown page.")) from error


def everybody(_user: User, _params: Params) -> None:
    """The same audience for all people."""


def role_snapshot(user: User, _params: Params) -> RoleSnapshot:
    """One audience for all people with the same roles."""
    return tenancy.role_snapshots([user.pk])[user.pk]


def tenant_topics(user: User, _params: Params) -> frozenset[str]:
    """All events of the tenants that the person may see."""
    return frozenset(f"tenant:{pk}" for pk in tenancy.visible_to(user).values_list("pk", flat=True))


def owner_topics(user: User, _params: Params) -> frozenset[str]:
    return frozenset({f"owner:{user.pk}"})


def all_topics(user: User, _params: Params) -> frozenset[str]:
    """All events of the person's tenants and of all clusters: free capacity concerns everyone."""
    own = tenant_topics(user, _params)
    return own | frozenset(f"cluster:{pk}" for pk in clusters.all_clusters().values_list("pk", flat=True))


def cluster_topics(_user: User, _params: Params) -> frozenset[str]:
    """All events of clusters and machines: free capacity concerns everyone."""
    return MACHINES | {f"cluster:{pk}" for pk in clusters.all_clusters().values_list("pk", flat=True)}
