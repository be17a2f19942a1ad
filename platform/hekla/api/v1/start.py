"""Endpoint of the estimated start of a pending job."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.throttles import PerPersonThrottle, WhatIfThrottle
from hekla.api.v1.what_if import OtherJobsSerializer, describe_others
from hekla.api.views import ApiView, person, respond
from hekla.apps.forecasts import selectors as forecasts
from hekla.apps.forecasts.selectors import Accuracy
from hekla.apps.jobs import selectors
from hekla.apps.jobs.models import Job
from hekla.domain.phases import STOPPING_JOB_PHASES
from hekla.lib import clock
from hekla.simulation import descriptions, what_if
from hekla.simulation.what_if import StartVerdict, WhatIfResult


class AccuracySerializer(serializers.Serializer[Accuracy]):
    """The number of recent estimates for the queue, and of correct ones."""

    held = serializers.IntegerField()
    cases = serializers.IntegerField()


class StartSerializer(serializers.Serializer[dict[str, Any]]):
    waits = serializers.BooleanField(help_text="false: the job is placed or finished; the other fields are empty")
    text = serializers.ListField(child=serializers.CharField(), help_text="all results as sentences")
    place = serializers.IntegerField(help_text="position in the queue; 0: not in a queue")
    line = serializers.IntegerField(help_text="number of pending jobs in the queue, including this one")
    earliest_at = serializers.DateTimeField(allow_null=True, help_text="null: unknown")
    latest_at = serializers.DateTimeField(allow_null=True)
    after = OtherJobsSerializer(help_text="jobs that must end first")
    accuracy = AccuracySerializer(allow_null=True, help_text="null: too few estimates")


class JobStartView(ApiView):
    throttle_classes = (PerPersonThrottle, WhatIfThrottle)

    @extend_schema(responses=StartSerializer)
    def get(self, request: Request, uid: UUID) -> Response:
        """Estimated start of a pending job, its position, and the accuracy of estimates in its queue."""
        user = person(request)
        job = selectors.get(uid, user)
        is_ending = job.is_final or job.phase in STOPPING_JOB_PHASES
        answer = WhatIfResult(StartVerdict.NOW) if is_ending else what_if.predict_job(job, user=user, with_offers=False)
        return respond(StartSerializer(_document(job, answer)))


def _document(job: Job, answer: WhatIfResult) -> dict[str, Any]:
    accuracy = forecasts.accuracy(job.queue_id)
    return {
        "waits": answer.verdict is not StartVerdict.NOW,
        "text": _sentences(answer, accuracy),
        "place": answer.place,
        "line": answer.line,
        "earliest_at": answer.eta.earliest if answer.eta else None,
        "latest_at": answer.eta.latest if answer.eta else None,
        "after": describe_others(answer.after),
        "accuracy": accuracy,
    }


def _sentences(answer: WhatIfResult, accuracy: Accuracy | None) -> list[str]:
    if answer.verdict is StartVerdict.NEVER:
        return [descriptions.head(answer)]
    return descriptions.why_and_when(answer, clock.now(), accuracy)
