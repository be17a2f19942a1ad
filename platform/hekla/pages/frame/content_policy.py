"""The header `Content-Security-Policy`. The usual one is built once, and not for each response."""

from functools import cache

from csp.constants import HEADER
from csp.middleware import CheckableLazyObject, CSPMiddleware
from csp.utils import build_policy
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

_OF_RESPONSE = frozenset(
    f"_csp_{part}{kind}" for part in ("config", "update", "replace", "exempt") for kind in ("", "_ro")
)
"""Attributes with which a view changes the policy of its response."""


class ContentPolicyMiddleware(CSPMiddleware):
    """As its base, which still builds the policy of a page that uses a nonce, or has a policy of its own."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Add the header."""
        has_own = HEADER in response.headers or not _OF_RESPONSE.isdisjoint(response.__dict__)
        if has_own or settings.DEBUG or getattr(request, "_csp_nonce", None) is not None:
            return super().process_response(request, response)
        response.headers[HEADER] = _usual()
        request.csp_nonce = CheckableLazyObject(self._csp_nonce_post_response)  # type: ignore[attr-defined]
        return response


@cache
def _usual() -> str:
    """The policy of the settings."""
    return build_policy()
