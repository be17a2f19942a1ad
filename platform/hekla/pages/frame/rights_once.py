"""The rights of a person, read once for each request that only reads."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase

from hekla.apps.tenancy import selectors as tenancy

_READING = {"GET", "HEAD"}


class RightsReadOnce:
    """Answers all questions about the person's rights in tenants from one query.

    Other requests may change rights, so they ask each time. A streamed answer asks again too: it outlives the request.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Handle the request."""
        if request.method not in _READING:
            return self.get_response(request)
        with tenancy.rights_read_once({}):
            return self.get_response(request)
