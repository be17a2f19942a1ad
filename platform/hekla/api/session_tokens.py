"""What the token of a session with a pod may do: little, because whatever runs in the pod can read it.

Only these routes accept it, for the jobs of its owner in the tenant of the session's job.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from django.http import HttpRequest
from django.utils.translation import gettext as _

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.jobs import selectors as jobs
from hekla.apps.workbench import selectors as workbench
from hekla.domain.errors import Forbidden, NotFound
from hekla.lib import clock

_GET, _POST, _BOTH = frozenset({"GET"}), frozenset({"POST"}), frozenset({"GET", "POST"})
ROUTES: Mapping[str, frozenset[str]] = {
    "api:v1:me": _GET,
    "api:v1:jobs": _BOTH,
    "api:v1:job": _GET,
    "api:v1:job_actions": _POST,
    "api:v1:job_events": _GET,
    "api:v1:job_start": _GET,
    "api:v1:job_waits": _GET,
    "api:v1:pod_log": _GET,
    "api:v1:pod_files": _GET,
    "api:v1:pod_file": _GET,
}
"""The methods by route. The identifier `uid` of a route is that of a job."""


class SessionTokenForbidden(Forbidden):
    """The token of a session may not do this; its owner may, elsewhere."""

    code = "session_token"

    def __init__(self) -> None:
        super().__init__(_("The token of a session only submits, reads and changes your jobs in the session's tenant."))


@dataclass(frozen=True, slots=True)
class SessionAccess:
    """How a request was authenticated by the token of a session: for this tenant. `session`: its tool and pod."""

    tenant: str
    session: str


def authenticate(request: HttpRequest, secret: str) -> tuple[User, SessionAccess] | None:
    """The owner of the token, and what it reaches; None if it is not in force.

    It limits a list of jobs, and a submission, to what the token reaches. Raises SessionTokenForbidden, NotFound.
    """
    token = accounts.session_token_in_force(secret, now=clock.now())
    session = workbench.of_token(token) if token is not None else None
    if token is None or session is None:
        return None
    _require_route(request)
    access = SessionAccess(session.pod.job.tenant.slug, session.place)
    match = request.resolver_match
    if match is not None and "uid" in match.kwargs:
        job = jobs.get(match.kwargs["uid"], token.user)
        if job.owner_id != token.user_id or job.tenant_id != session.pod.job.tenant_id:
            raise NotFound(_("Unknown job."))
    elif match is not None and match.view_name == "api:v1:jobs":
        _limit(request, access.tenant)
    return token.user, access


def _require_route(request: HttpRequest) -> None:
    match = request.resolver_match
    if match is None or request.method not in ROUTES.get(match.view_name, ()):
        raise SessionTokenForbidden


def _limit(request: HttpRequest, tenant: str) -> None:
    query = request.GET.copy()
    if any(slug != tenant for slug in query.getlist("tenant")):
        raise NotFound(_("Unknown tenant."))
    query["tenant"] = tenant
    if request.method == "GET":
        query["mine"] = "true"
    request.GET = query  # type: ignore[assignment]
