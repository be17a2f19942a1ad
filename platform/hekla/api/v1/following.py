"""Endpoints of a job's events, and of the attempts, usage and logs of its pods."""

from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.arrays import ArrayQuery, array
from hekla.api.throttles import PerPersonThrottle, SearchThrottle
from hekla.api.v1.serializers import (
    AttemptSerializer,
    EventsSerializer,
    FoundSerializer,
    LogSerializer,
    SampleSerializer,
    TaskScalingSerializer,
)
from hekla.api.views import ApiView, person, respond
from hekla.apps.accounts.models import User
from hekla.apps.clusters import selectors as clusters
from hekla.apps.jobs import selectors
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.usage import autoscaling
from hekla.apps.usage import selectors as usage
from hekla.backends.base import Backend, PodKey
from hekla.backends.log_search import MAX_MATCHES, MAX_QUERY, LogQuery, search_log
from hekla.backends.logs import read_text
from hekla.backends.pool import get_backend
from hekla.domain.errors import NotFound
from hekla.lib import clock, long_poll

LONGEST_WAIT_SECONDS = 25
_MOST = 2**62
MOST_EVENTS = 500
MOST_LOG_BYTES = 1024 * 1024


class EventsQuery(serializers.Serializer[Any]):
    after = serializers.IntegerField(
        min_value=0, max_value=_MOST, default=0, help_text="only events with a higher number"
    )
    wait = serializers.FloatField(
        min_value=0, max_value=LONGEST_WAIT_SECONDS, default=0, help_text="seconds to wait for an event"
    )


class AttemptQuery(serializers.Serializer[Any]):
    attempt = serializers.IntegerField(
        min_value=0, max_value=2**31 - 1, required=False, help_text="attempt; default: the last"
    )


class LogPartQuery(AttemptQuery):
    offset = serializers.IntegerField(min_value=0, max_value=_MOST, default=0, help_text="first byte")
    limit = serializers.IntegerField(
        min_value=4, max_value=MOST_LOG_BYTES, default=64 * 1024, help_text="maximum number of bytes"
    )


class LogSearchQuery(AttemptQuery):
    q = serializers.CharField(max_length=MAX_QUERY, trim_whitespace=False, help_text="plain text, in one line")
    ignore_case = serializers.BooleanField(default=False)
    offset = serializers.IntegerField(
        min_value=0, max_value=_MOST, default=0, help_text="first byte of the line `line`, from `next_offset`"
    )
    line = serializers.IntegerField(
        min_value=1, max_value=_MOST, default=1, help_text="number of the line at `offset`, from 1"
    )
    limit = serializers.IntegerField(
        min_value=1, max_value=MAX_MATCHES, default=100, help_text="maximum number of lines"
    )


class JobEventsView(ApiView):
    queries = {"get": EventsQuery}

    @extend_schema(responses=EventsSerializer)
    def get(self, request: Request, uid: UUID) -> Response:
        """The events of a job, oldest first."""
        after, seconds = self.query["after"], self.query["wait"]
        job = selectors.get(uid, person(request))
        events = list(selectors.history(job).filter(pk__gt=after)[:MOST_EVENTS])
        if not events and seconds:
            _wait_for_event(request, job, after, seconds)
        return respond(EventsSerializer({"events": events, "next_after": events[-1].pk if events else after}))


class UsageQuery(AttemptQuery, ArrayQuery):
    """An attempt, and the part of its samples."""


class PodAttemptsView(ApiView):
    queries = {"get": ArrayQuery}

    @extend_schema(responses=AttemptSerializer(many=True))
    def get(self, request: Request, uid: UUID, task: str, index: int) -> Response:
        """All attempts of a replica, oldest first: times, node, result and advice."""
        attempts = selectors.attempts(selectors.get(uid, person(request)), [(task, index)])
        if not attempts:
            raise NotFound(_("Unknown pod, or the pod was not created yet."))
        return array(request, attempts, AttemptSerializer)


class PodUsageView(ApiView):
    queries = {"get": UsageQuery}

    @extend_schema(responses=SampleSerializer(many=True))
    def get(self, request: Request, uid: UUID, task: str, index: int) -> Response:
        """Usage of an attempt over time: every 10 seconds for the last hour, with less detail before."""
        pod = find_pod(uid, person(request), task, index, self.query.get("attempt"))
        return array(request, usage.samples(pod), SampleSerializer)


class JobAutoscalingView(ApiView):
    queries = {"get": ArrayQuery}

    @extend_schema(responses=TaskScalingSerializer(many=True))
    def get(self, request: Request, uid: UUID) -> Response:
        """The tasks of a job with autoscaling: their utilization, and why their replicas change or stay."""
        found = autoscaling.of_job(selectors.get(uid, person(request)), now=clock.now())
        return array(request, found, TaskScalingSerializer)


class PodLogSearchView(ApiView):
    queries = {"get": LogSearchQuery}
    throttle_classes = (PerPersonThrottle, SearchThrottle)

    @extend_schema(responses=FoundSerializer)
    def get(self, request: Request, uid: UUID, task: str, index: int) -> Response:
        """Lines of a pod's log with a text, from a position on. A long log needs several requests."""
        values = self.query
        pod = find_pod(uid, person(request), task, index, values.get("attempt"))
        key = PodKey(uid.hex, task, index, pod.attempt, tenant=pod.job.tenant.slug)
        needle = LogQuery(values["q"], ignore_case=values["ignore_case"])
        found = search_log(
            backend_of(pod.job),
            key,
            needle,
            offset=values["offset"],
            line=values["line"],
            most=values["limit"],
            ended=pod.is_final,
        )
        return respond(FoundSerializer(found))


class PodLogView(ApiView):
    queries = {"get": LogPartQuery}

    @extend_schema(responses=LogSerializer)
    def get(self, request: Request, uid: UUID, task: str, index: int) -> Response:
        """A part of a pod's standard output and error."""
        values = self.query
        pod = find_pod(uid, person(request), task, index, values.get("attempt"))
        key = PodKey(uid.hex, task, index, pod.attempt, tenant=pod.job.tenant.slug)
        backend = backend_of(pod.job)
        return respond(
            LogSerializer(read_text(backend, key, offset=values["offset"], limit=values["limit"], ended=pod.is_final))
        )


def _wait_for_event(request: Request, job: Job, after: int, seconds: float) -> None:
    """Ask the web server to repeat this request after the next event. Without such a server the client asks again."""
    scope = getattr(request, "scope", None)
    if scope is not None:
        poll = long_poll.LongPoll(f"job:{job.uid}", after, seconds, person(request).pk)
        long_poll.request(scope, poll)


def find_pod(uid: UUID, user: User, task: str, index: int, attempt: int | None) -> Pod:
    """An attempt of a replica; None: the last. Raises NotFound, also without permission."""
    attempts = selectors.pods(selectors.get(uid, user)).filter(task=task, index=index)
    pod = (attempts if attempt is None else attempts.filter(attempt=attempt)).last()
    if pod is None:
        raise NotFound(_("Unknown pod, or the pod was not created yet."))
    return pod


def backend_of(job: Job) -> Backend:
    """The backend of the job's cluster."""
    return get_backend(**clusters.backend_facts(job.cluster), home=settings.HEKLA_HOME)
