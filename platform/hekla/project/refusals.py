"""What people see when a service refuses and the view did not say it in a form of its own."""

from collections.abc import Callable

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme

from hekla.domain.errors import HeklaError, NotFound


class RefusalMiddleware:
    """NotFound becomes a 404; any other refusal of a posted button becomes a message on the page it came from."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Answer a HeklaError in words; leave everything else to Django."""
        if isinstance(exception, NotFound):
            raise Http404(exception.message) from exception
        if not isinstance(exception, HeklaError):
            return None
        origin = request.headers.get("referer", "")
        if request.method == "POST" and url_has_allowed_host_and_scheme(origin, {request.get_host()}):
            messages.error(request, exception.message)
            return redirect(origin)
        return render(request, "403.html", {"exception": exception.message}, status=403)
