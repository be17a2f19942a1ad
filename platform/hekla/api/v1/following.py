"""Endpoints of a job's events, and of the attempts, usage and logs of its pods."""

import time
from uuid import UUID

from django.conf import settings
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.v1.serializers import (
    AttemptSerializer,
    EventsSerializer,
    FoundSerializer,
    LogSerializer,
    SampleSerializer,
)
from hekla.api.views import ApiView, person, respond
from hekla.apps.accounts.models import User
from hekla.apps.clusters import selectors as clusters
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.jobs import selectors
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.usage import selectors as usage
from hekla.backends.base import Backend, PodKey
from hekla.backends.log_search import MAX_MATCHES, MAX_QUERY, LogQuery, search_log
from hekla.backends.logs import read_text
from hekla.backends.pool import get_backend
from hekla.domain.errors import NotFound

LONGEST_WAIT_SECONDS = 25
LOOK_EVERY_SECONDS = 0.1
_MOST = 2**62
MOST_EVENTS = 500
MOST_LOG_BYTES = 1024 * 1024


class _EventsQuery(serializers.Serializer[None]):
    after = serializers.IntegerField(min_value=0, max_value=_MOST, default=0)
    wait = serializers.FloatField(min_value=0, max_value=LONGEST_WAIT_SECONDS, default=0)


class _LogQuery(serializers.Serializer[None]):
    offset = serializers.IntegerField(min_value=0, max_value=_MOST, default=0)
    limit = serializers.IntegerField(min_value=4, max_value=MOST_LOG_BYTES, default=64 * 1024)
    attempt = serializers.IntegerField(min_value=0, max_value=2**31 - 1, required=False)


class _UseQuery(serializers.Serializer[None]):
    attempt = serializers.IntegerField(min_value=0, max_value=2**31 - 1, required=False)


class _SearchQuery(_UseQuery):
    q = serializers.CharField(max_length=MAX_QUERY, trim_whitespace=False)
    ignore_case = serializers.BooleanField(default=False)
    offset = serializers.IntegerField(min_value=0, max_value=_MOST, default=0)
    line = serializers.IntegerField(min_value=1, max_value=_MOST, default=1)
    limit = serializers.IntegerField(min_value=1, max_value=MAX_MATCHES, default=100)


class JobEventsView(ApiView):
    @extend_schema(
        parameters=[
            OpenApiParameter("after", int, description="only events with a higher number"),
            OpenApiParameter("wait", float, description=f"wait for an event, at most {LONGEST_WAIT_SECONDS} seconds"),
        ],
        responses=EventsSerializer,
    )
    def get(self, request: Request, uid: UUID) -> Response:
        """The events of a job, oldest first."""
        query = _EventsQuery(data=request.query_params)
        query.is_valid(raise_exception=True)
        after = query.validated_data["after"]
        events = _await(selectors.get(uid, person(request)), after, query.validated_data["wait"])
        return respond(EventsSerializer({"events": events, "next_after": events[-1].pk if events else after}))


class PodAttemptsView(ApiView):
    @extend_schema(responses=AttemptSerializer(many=True))
    def get(self, request: Request, uid: UUID, task: str, index: int) -> Response:
        """All attempts of a replica, oldest first: times, node, result and advice."""
        attempts = selectors.attempts(selectors.get(uid, person(request)), [(task, index)])
        if not attempts:
            raise NotFound(_("Unknown pod, or the pod was not created yet."))
        return respond(AttemptSerializer(attempts, many=True))


class PodUsageView(ApiView):
    @extend_schema(
        parameters=[OpenApiParameter("attempt", int, description="attempt; default: the last")],
        responses=SampleSerializer(many=True),
    )
    def get(self, request: Request, uid: UUID, task: str, index: int) -> Response:
        """Usage of an attempt over time: every 10 seconds for the last hour, with less detail before."""
        query = _UseQuery(data=request.query_params)
        query.is_valid(raise_exception=True)
        pod = _pod(uid, person(request), task, index, query.validated_data.get("attempt"))
        return respond(SampleSerializer(usage.samples(pod), many=True))


class PodLogSearchView(ApiView):
    @extend_schema(
        parameters=[
            OpenApiParameter("q", str, required=True, description="plain text, in one line"),
            OpenApiParameter("ignore_case", bool),
            OpenApiParameter("offset", int, description="first byte of the line `line`, from `next_offset`"),
            OpenApiParameter("line", int, description="number of the line at `offset`, from 1"),
            OpenApiParameter("limit", int, description=f"maximum number of lines, up to {MAX_MATCHES}"),
            OpenApiParameter("attempt", int, description="attempt; default: the last"),
        ],
        responses=FoundSerializer,
    )
    def get(self, request: Request, uid: UUID, task: str, index: int) -> Response:
        """Lines of a pod's log with a text, from a position on. A long log needs several requests."""
        selectors.get(uid, person(request))
        query = _SearchQuery(data=request.query_params)
        query.is_valid(raise_exception=True)
        values = query.validated_data
        pod = _pod(uid, person(request), task, index, values.get("attempt"))
        key = PodKey(uid.hex, task, index, pod.attempt, tenant=pod.job.tenant.slug)
        needle = LogQuery(values["q"], ignore_case=values["ignore_case"])
        found = search_log(
            _backend(pod.job),
            key,
            needle,
            offset=values["offset"],
            line=values["line"],
            most=values["limit"],
            ended=pod.is_final,
        )
        return respond(FoundSerializer(found))


class PodLogView(ApiView):
    @extend_schema(
        parameters=[
            OpenApiParameter("offset", int, description="first byte"),
            OpenApiParameter("limit", int, description="maximum number of bytes"),
            OpenApiParameter("attempt", int, description="attempt; default: the last"),
        ],
        responses=LogSerializer,
    )
    def get(self, request: Request, uid: UUID, task: str, index: int) -> Response:
        """A part of a pod's standard output and error."""
        query = _LogQuery(data=request.query_params)
        query.is_valid(raise_exception=True)
        values = query.validated_data
        pod = _pod(uid, person(request), task, index, values.get("attempt"))
        key = PodKey(uid.hex, task, index, pod.attempt, tenant=pod.job.tenant.slug)
        backend = _backend(pod.job)
        return respond(
            LogSerializer(read_text(backend, key, offset=values["offset"], limit=values["limit"], ended=pod.is_final))
        )


def _await(job: Job, after: int, seconds: float) -> list[LoggedEvent]:
    """The next events, or [] after `seconds`. Polls the database, because any process may write events."""
    deadline = time.monotonic() + seconds
    while True:
        events = list(selectors.history(job).filter(pk__gt=after)[:MOST_EVENTS])
        if events or time.monotonic() >= deadline:
            return events
        time.sleep(LOOK_EVERY_SECONDS)


def _pod(uid: UUID, user: User, task: str, index: int, attempt: int | None) -> Pod:
    attempts = selectors.pods(selectors.get(uid, user)).filter(task=task, index=index)
    pod = (attempts if attempt is None else attempts.filter(attempt=attempt)).last()
    if pod is None:
        raise NotFound(_("Unknown pod, or the pod was not created yet."))
    return pod


def _backend(job: Job) -> Backend:
    return get_backend(**clusters.backend_facts(job.cluster), home=settings.HEKLA_HOME)
