"""Metrics and spans of requests, by the route's name instead of the URL, so that clients cannot add label values."""

import time
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from prometheus_client import Counter, Histogram
from structlog.contextvars import bind_contextvars

from hekla.apps.accounts.access import VERBS
from hekla.lib import tracing

_OF_JOBS = ("jobs:", "api:v1:job", "api:v1:pod")
_METHODS = frozenset({*(verb.upper() for verb in VERBS), "HEAD", "OPTIONS"})
REQUESTS = Counter(
    "hekla_http_requests", "Answered requests, by the class of the status.", ["route", "method", "status"]
)
REQUEST_SECONDS = Histogram(
    "hekla_http_request_duration_seconds",
    "Response time of requests.",
    ["route", "method"],
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)


class RequestFigures:
    """Measures all requests except those for static files."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Handle the request within a span, then count it."""
        method = request.method if request.method in _METHODS else ""
        began = time.perf_counter()
        with tracing.span(f"{method} request", {"http.request.method": method}):
            response = self.get_response(request)
            route = request.resolver_match.view_name if request.resolver_match else ""
            about: dict[str, str | int] = {"http.route": route, "http.response.status_code": response.status_code}
            tracing.annotate(about, name=f"{method} {route}")
        REQUEST_SECONDS.labels(route, method).observe(time.perf_counter() - began)
        REQUESTS.labels(route, method, f"{response.status_code // 100}xx").inc()
        return response

    def process_view(self, request: HttpRequest, _view: object, _args: object, kwargs: dict[str, Any]) -> None:
        """Let log lines of this request name its route and job."""
        route = request.resolver_match.view_name if request.resolver_match else ""
        is_of_job = "uid" in kwargs and route.startswith(_OF_JOBS)
        bind_contextvars(route=route, **({"job": str(kwargs["uid"])} if is_of_job else {}))
