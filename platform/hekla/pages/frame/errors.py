"""Error pages for refusals of services that the view did not show in its own form."""

from collections.abc import Callable

from django.contrib import messages
from django.core.exceptions import RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.signin import rule
from hekla.domain.errors import HeklaError, Invalid, NotFound

_NOT_FOUND, _TOO_LARGE = 404, 413


class RefusalMiddleware:
    """Turns NotFound into a 404, and any other refusal of a POST into a message on the page that sent it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Pass the request on; exceptions arrive in `process_exception`."""
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """The response to a HeklaError; None for other exceptions, which Django handles."""
        if isinstance(exception, NotFound):
            raise Http404(exception.message) from exception
        if not isinstance(exception, HeklaError):
            return None
        origin = request.headers.get("referer", "")
        if request.method == "POST" and url_has_allowed_host_and_scheme(origin, {request.get_host()}):
            messages.error(request, exception.message)
            return redirect(origin)
        status = 400 if isinstance(exception, Invalid) else 403
        return render(request, f"{status}.html", {"refusal": exception.message}, status=status)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's 400 page, or a 413 for a body that exceeds the limit."""
    if not isinstance(exception, RequestDataTooBig):
        return render(request, "400.html", status=400)
    refusal = _(
        "The request is larger than 2 MiB. A manifest can have 1 MiB. Nothing was saved. Go back: your input "
        "is still there."
    )
    return render(request, "400.html", {"refusal": refusal}, status=_TOO_LARGE)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001  (Django passes it by name)
    """The 404 page: with the navigation for a person who is signed in, else in the frame of public pages."""
    user = getattr(request, "user", None)
    is_signed_in = isinstance(user, User) and not rule.without_required_factor([user.pk])
    frame = "base.html" if is_signed_in else "base_public.html"
    return render(request, "404.html", {"frame": frame}, status=_NOT_FOUND)
