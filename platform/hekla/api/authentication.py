"""Bearer tokens: `Authorization: Bearer hk_…`."""

from django.utils.translation import gettext as _
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from hekla.api import session_tokens
from hekla.api.session_tokens import SessionAccess
from hekla.apps.accounts import services
from hekla.apps.accounts.models import ApiToken, User
from hekla.lib import clock


class TokenAuthentication(BaseAuthentication):
    """Authenticates by API token. A request without a bearer token is left to the next authentication class."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken | SessionAccess] | None:
        """The owner of the token in the header, and the token. Raises AuthenticationFailed if it is not valid.

        For the token of a session: what it reaches. Raises Forbidden, NotFound for other requests with it.
        """
        scheme, _space, secret = get_authorization_header(request).partition(b" ")
        if scheme.lower() != b"bearer":
            return None
        text = secret.strip().decode("latin-1")
        if text.startswith(services.SESSION_TOKEN_PREFIX):
            if (found := session_tokens.authenticate(request._request, text)) is None:
                raise AuthenticationFailed(_("The session of this token has ended. Open a new one."))
            return found
        token = services.token_in_force(text, now=clock.now())
        if token is None:
            raise AuthenticationFailed(_("Unknown, expired or revoked token. Create a new one."))
        return token.user, token

    def authenticate_header(self, request: Request) -> str:  # noqa: ARG002
        """The `WWW-Authenticate` header of a 401 response."""
        return "Bearer"


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Describes bearer tokens in the OpenAPI schema."""

    target_class = TokenAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:  # noqa: ARG002
        return {"type": "http", "scheme": "bearer"}
