"""The endpoint where Prometheus scrapes the web process and the metrics from the database."""

from http import HTTPStatus

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare
from django.views.decorators.http import require_safe
from prometheus_client import REGISTRY, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from hekla.pages.metrics.rows import rows


@login_not_required
@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """All metrics, for clients with the token; it does not matter who is signed in. 404 if no token is configured."""
    if not settings.METRICS_TOKEN:
        raise Http404
    if not _has_token(request):
        return HttpResponse(status=HTTPStatus.UNAUTHORIZED, headers={"WWW-Authenticate": "Bearer"})
    body = generate_latest(REGISTRY) + generate_latest(rows)
    return HttpResponse(body, content_type=CONTENT_TYPE_PLAIN_0_0_4)


def _has_token(request: HttpRequest) -> bool:
    scheme, _space, token = request.headers.get("Authorization", "").partition(" ")
    return scheme.lower() == "bearer" and constant_time_compare(token, settings.METRICS_TOKEN)
