"""ETags of API responses: conditional reads and conditional changes.

An ETag is a hash of the response body. A GET with `If-None-Match` returns 304 if the body is unchanged. A change with
`If-Match` is refused if the resource has changed since the client read it (`preconditions.py`).
"""

from django.http.request import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.http import ConditionalGetMiddleware


class ETagMiddleware(ConditionalGetMiddleware):
    """Adds ETags to API responses only: pages differ in every rendering."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Add the ETag. Return 304 if the client has this version."""
        return super().process_response(request, response) if request.path.startswith("/api/") else response
