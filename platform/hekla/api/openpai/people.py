"""OpenPAI's views to sign in, to check tokens, and to read people."""

from datetime import timedelta
from http import HTTPStatus
from typing import Any

from django.contrib.auth import authenticate
from django.utils.translation import gettext as _
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

import hekla
from hekla.api.openpai.errors import OpenpaiError, wrong_parameter
from hekla.api.openpai.views import JSON_OR_FORM, OpenpaiView, request_body
from hekla.api.throttles import PerAddressThrottle, SignInThrottle
from hekla.api.views import person
from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts import services
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.scopes import Scope
from hekla.apps.queues import selectors as queues
from hekla.apps.signin import rule, slowdown
from hekla.apps.signin import selectors as signin
from hekla.apps.tenancy import selectors as tenancy
from hekla.domain.errors import NotFound
from hekla.lib import clock

SHORTEST_SECONDS, USUAL_SECONDS, LONGEST_SECONDS = 60, 24 * 3600, 7 * 24 * 3600
_MAX_DIGITS = len(str(LONGEST_SECONDS))
_TOKEN_NAME = "OpenPAI"  # noqa: S105  (the name of the token)


class PublicOpenpaiView(OpenpaiView):
    """A view that needs no token."""

    authentication_classes = ()
    permission_classes = (AllowAny,)
    throttle_classes = (PerAddressThrottle,)


class InfoView(PublicOpenpaiView):
    """The name and version of the server."""

    def get(self, request: Request) -> Response:  # noqa: ARG002
        """The fields that OpenPAI's clients read."""
        facts = {"name": "PAI RESTful API", "version": f"v1.8.0+hekla.{hekla.__version__}"}
        return Response({**facts, "launcherType": "k8s", "authnMethod": "basic"})


class AuthnInfoView(PublicOpenpaiView):
    """The sign-in method."""

    def get(self, request: Request) -> Response:  # noqa: ARG002
        """Basic: user name and password."""
        return Response({"authn_type": "basic", "loginURI": "/api/v1/authn/basic/login", "loginURIMethod": "post"})


class LoginView(PublicOpenpaiView):
    """Signs a person in."""

    parser_classes = JSON_OR_FORM  # type: ignore[assignment]
    throttle_classes = (SignInThrottle,)

    def post(self, request: Request) -> Response:
        """Create a token for a user name and a password. `expiration`: 60 to 604,800 seconds, by default a day."""
        fields = request_body(request)
        username, password = (str(fields.get(name, "")) for name in ("username", "password"))
        lifetime = _lifetime(fields.get("expiration"))
        user, now = _authenticate(request, username, password), clock.now()
        address = request.META.get("REMOTE_ADDR") or ""
        services.note_sign_in(user, method="password", address=address, now=now)
        token = services.create_token(
            user, name=_TOKEN_NAME, lifetime=lifetime, scopes=[Scope.JOBS], now=now, is_sign_in=True
        )
        return Response({"user": user.username, "token": token, "admin": is_admin(user), "hasGitHubPAT": False})


class LogoutView(OpenpaiView):
    """Signs a person out."""

    writes = Scope.READ

    def delete(self, request: Request) -> Response:
        """Revoke the token of the request."""
        _scheme, _space, secret = request.headers.get("Authorization", "").partition(" ")
        try:
            services.revoke_secret(person(request), secret.strip(), now=clock.now())
        except NotFound as error:
            raise wrong_parameter(_("Missing token.")) from error
        return Response({"message": "Logout successfully"})


class TokenCheckView(OpenpaiView):
    """The owner of a token."""

    def get(self, request: Request) -> Response:
        """The user name of the token's owner."""
        user = person(request)
        return Response({"username": user.username, "application": False, "admin": is_admin(user)})


class OpenpaiUserListView(OpenpaiView):
    """The list of people."""

    def get(self, request: Request) -> Response:
        """All people, for people who can manage people; for others only themselves."""
        user = person(request)
        everybody = accounts.everybody() if accounts.may(user, Permission.MANAGE_PEOPLE) else [user]
        return Response([_describe(one) for one in everybody])


class OpenpaiUserView(OpenpaiView):
    """One person."""

    def get(self, request: Request, username: str) -> Response:
        """The person themselves; any person, for people who can manage people."""
        user = person(request)
        found = user if username == user.username else None
        if found is None and accounts.may(user, Permission.MANAGE_PEOPLE):
            found = accounts.by_username(username)
        if found is None:
            message = _("User %(name)s is not found.") % {"name": username[:150]}
            raise OpenpaiError(HTTPStatus.NOT_FOUND, "NoUserError", message)
        return Response(_describe(found))


def is_admin(user: User) -> bool:
    """Whether the person is an admin in OpenPAI's sense: can act on all jobs."""
    return accounts.may(user, Permission.ACT_ON_ANY_JOB)


def _describe(user: User) -> dict[str, Any]:
    return {
        "username": user.username,
        "email": user.email,
        "admin": is_admin(user),
        "grouplist": list(tenancy.own(user).values_list("slug", flat=True)),
        "virtualCluster": list(queues.visible_to(user).values_list("name", flat=True)),
        "storageConfig": [],
        "extension": {},
    }


def _lifetime(value: object) -> timedelta:
    text = str(USUAL_SECONDS if value in (None, "") else value)
    is_number = text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS
    if not is_number or not SHORTEST_SECONDS <= int(text) <= LONGEST_SECONDS:
        facts = {"least": SHORTEST_SECONDS, "most": LONGEST_SECONDS}
        raise wrong_parameter(_("“expiration” must be between %(least)d and %(most)d seconds.") % facts)
    return timedelta(seconds=int(text))


def _authenticate(request: Request, username: str, password: str) -> User:
    """The person with this password. Raises OpenpaiError, with the same message for a wrong name and password, and
    SecondFactorMissing.
    """
    django_request = request._request
    address = request.META.get("REMOTE_ADDR", "")
    if username and (wait := slowdown.attempt(username, address, now=clock.now())):
        message = _("Too many wrong passwords. Try again in %(seconds)d seconds.") % {"seconds": wait.seconds + 1}
        raise OpenpaiError(HTTPStatus.TOO_MANY_REQUESTS, "TooManyRequestsError", message)
    user = (
        authenticate(django_request, username=username, password=password) if "\0" not in username + password else None
    )
    if getattr(django_request, "axes_locked_out", False):
        django_request.axes_locked_out = False  # type: ignore[attr-defined]  # or axes answers with a page
        message = _("Too many wrong passwords. Try again in 15 minutes.")
        raise OpenpaiError(HTTPStatus.TOO_MANY_REQUESTS, "TooManyRequestsError", message)
    if not isinstance(user, User):
        message = _("Wrong user name or password.")
        raise OpenpaiError(HTTPStatus.BAD_REQUEST, "IncorrectPasswordError", message)
    slowdown.succeeded(username)
    if signin.has_second_factor(user):
        message = _(
            "Your account uses two-factor authentication, so a password alone gives no token. Create a token "
            "on your profile."
        )
        raise OpenpaiError(HTTPStatus.FORBIDDEN, "SecondFactorRequiredError", message)
    rule.require(user)
    return user
