"""Endpoints of pods without progress, of unused GPUs, and of the request to an owner to look at a job."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.documents import validated
from hekla.api.views import ApiView, person
from hekla.apps.accounts.scopes import Scope
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs import services
from hekla.apps.measures import ledger, stall_labels, stalls
from hekla.apps.measures.ledger import HeldGpus
from hekla.apps.measures.selectors import GpuTimeQuery
from hekla.apps.measures.stalls import StalledPod
from hekla.domain.stalls import ReminderCause, StallSign
from hekla.lib import clock

_MICROSECONDS = 1_000_000


class _PodSerializer(serializers.Serializer[Any]):
    job = serializers.UUIDField(help_text="uid")
    job_name = serializers.CharField()
    task = serializers.CharField()
    index = serializers.IntegerField()
    node = serializers.CharField()
    owner = serializers.CharField()
    tenant = serializers.CharField(help_text="short name")
    since = serializers.DateTimeField()


class StallSerializer(serializers.Serializer[Any]):
    sign = serializers.ChoiceField([one.value for one in StallSign])
    since = serializers.DateTimeField(help_text="about")
    text = serializers.CharField()
    figures = serializers.DictField(
        help_text="metric, step, pace (steps per second), usual (longest pause before, in seconds), and of the "
        "other pods in the middle: other_step, other_pace"
    )


class StalledPodSerializer(_PodSerializer):
    signs = StallSerializer(many=True)


class StalledPodsSerializer(serializers.Serializer[Any]):
    """`judged`: how many running pods were judged. `is_cut`: there are more pods, or more with signs."""

    judged = serializers.IntegerField()
    is_cut = serializers.BooleanField()
    pods = StalledPodSerializer(many=True)


class StalledPodsQuerySerializer(serializers.Serializer[Any]):
    minutes = serializers.IntegerField(
        min_value=stalls.LEAST_MINUTES,
        max_value=stalls.MOST_MINUTES,
        default=stalls.USUAL_MINUTES,
        help_text="a shorter time without progress is no sign; a log may be silent for twice as long",
    )
    cluster = serializers.CharField(
        required=False, max_length=200, help_text="name; default: all that are not simulated"
    )


class UnusedGpusPodSerializer(_PodSerializer):
    queue = serializers.CharField()
    gpus = serializers.FloatField()
    gpu_seconds = serializers.FloatField(help_text="since then")
    reason = serializers.CharField(help_text="idle: in a running job; gang: until enough pods of the job started")


class UnusedGpusSerializer(serializers.Serializer[Any]):
    pods = UnusedGpusPodSerializer(many=True)


class UnusedGpusQuerySerializer(serializers.Serializer[Any]):
    cluster = serializers.CharField(
        required=False, max_length=200, help_text="name; default: all that are not simulated"
    )
    queue = serializers.CharField(required=False, max_length=200, help_text="name")
    tenant = serializers.CharField(required=False, max_length=200, help_text="short name")


class ReminderSerializer(serializers.Serializer[Any]):
    """Why: it makes no progress, or holds GPUs that it does not use."""

    cause = serializers.ChoiceField([one.value for one in ReminderCause])


class StalledPodsView(ApiView):
    queries = {"get": StalledPodsQuerySerializer}

    @extend_schema(responses=StalledPodsSerializer)
    def get(self, request: Request) -> Response:
        """Running pods that seem to make no progress, with the evidence; at most 200."""
        report = stalls.stalled(person(request), **self.query, now=clock.now())
        rows = [_stalled(one) for one in report.rows]
        return Response({"judged": report.judged, "is_cut": report.is_cut, "pods": rows})


class UnusedGpusView(ApiView):
    queries = {"get": UnusedGpusQuerySerializer}

    @extend_schema(responses=UnusedGpusSerializer)
    def get(self, request: Request) -> Response:
        """Pods that hold GPUs now and have not used them for ten minutes, those with most GPU time first."""
        rows = ledger.waste(person(request), GpuTimeQuery(**self.query), now=clock.now())
        return Response({"pods": [_unused(one) for one in rows]})


class JobRemindersView(ApiView):
    writes = Scope.JOBS

    @extend_schema(request=ReminderSerializer, responses={204: None})
    def post(self, request: Request, uid: UUID) -> Response:
        """Ask the owner of a job to look at it. At most once in 24 hours for each job."""
        user = person(request)
        job = jobs.get(uid, user)
        services.require_reminder_right(job, user)
        values = validated(ReminderSerializer(data=request.data))
        services.remind_owner(job, ReminderCause(values["cause"]), user=user, now=clock.now())
        return Response(status=204)


def _stalled(found: StalledPod) -> dict[str, Any]:
    pod, job = found.pod, found.pod.job
    return {
        "job": job.uid,
        "job_name": job.name,
        "task": pod.task,
        "index": pod.index,
        "node": pod.node,
        "owner": job.owner.username,
        "tenant": job.tenant.slug,
        "since": found.since,
        "signs": [
            {"sign": one.sign, "since": one.since, "text": stall_labels.sentence(one), "figures": dict(one.figures)}
            for one in found.stalls
        ],
    }


def _unused(found: HeldGpus) -> dict[str, Any]:
    pod = found.pod
    job = pod.job if pod else None
    return {
        "job": job and job.uid,
        "job_name": job.name if job else "",
        "task": pod.task if pod else "",
        "index": pod.index if pod else 0,
        "node": found.holding.node,
        "owner": job.owner.username if job else "",
        "tenant": job.tenant.slug if job else "",
        "queue": job.queue.name if job else "",
        "since": found.since,
        "gpus": found.holding.gpus / 1000,
        "gpu_seconds": found.gpu_us / _MICROSECONDS,
        "reason": found.what.value if found.what else "",
    }
