"""Shows bidirectional controls in the texts of pages, so that no name or message looks different from what it is."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponseBase

from hekla.lib.text import show_bidi_in_html


class VisibleTextMiddleware:
    """Comes below the middleware that sets the length of a response or compresses it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Handle the request; change the response if it is a page with such controls."""
        response = self.get_response(request)
        if isinstance(response, HttpResponse) and response.headers.get("Content-Type", "").startswith("text/html"):
            page = response.text
            if (visible := show_bidi_in_html(page)) is not page:
                response.content = visible.encode(response.charset)
        return response
