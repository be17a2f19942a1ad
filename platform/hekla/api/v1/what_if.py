"""Endpoint of the what-if preview of a job. Nothing is saved."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiRequest, extend_schema
from rest_framework import serializers
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.parsers import BoundedJSONParser, ManifestParser
from hekla.api.throttles import PerPersonThrottle, WhatIfThrottle
from hekla.api.v1.jobs import parse_submission
from hekla.api.v1.parameters import TenantQuery, tenant_of
from hekla.api.v1.schema import JOB_SPEC
from hekla.api.v1.serializers import ProspectSerializer, pending_changes
from hekla.api.views import ApiView, person, respond
from hekla.apps.forecasts import selectors as forecasts
from hekla.apps.forecasts.selectors import Accuracy
from hekla.apps.jobs import services as jobs
from hekla.apps.jobs.services import Route
from hekla.apps.measures import job_costs
from hekla.apps.measures.job_costs import CostEstimate
from hekla.apps.tenancy import selectors as tenancy
from hekla.domain.jobspec import JobSpec
from hekla.domain.prices import as_decimal
from hekla.domain.spec_changes import apply_changes
from hekla.lib import clock
from hekla.simulation import descriptions, what_if
from hekla.simulation.suggestions import Suggestion
from hekla.simulation.what_if import OtherJobs, StartVerdict, WhatIfResult


class OtherJobsSerializer(serializers.Serializer[OtherJobs]):
    known = serializers.ListField(child=serializers.CharField(), help_text="names of jobs that you can see")
    unknown = serializers.IntegerField(help_text="number of jobs of other tenants")
    pods = serializers.IntegerField(help_text="number of pods of all these jobs")


class _ChangeSerializer(serializers.Serializer[dict[str, Any]]):
    change = serializers.CharField(help_text="for example worker.replicas=2")
    text = serializers.CharField(help_text="the change as a sentence")
    evicts = serializers.IntegerField(help_text="number of pods that would be evicted")
    spec = serializers.JSONField(help_text="the whole changed job")


class CostEstimateSerializer(serializers.Serializer[CostEstimate]):
    """What the job costs if it starts now; `high` differs from `low` if the model of its GPUs is open."""

    low = serializers.SerializerMethodField()
    high = serializers.SerializerMethodField()
    currency = serializers.CharField()
    seconds = serializers.IntegerField(
        allow_null=True, help_text="run time; null: unknown, the cost is that of an hour"
    )
    cases = serializers.IntegerField(help_text="earlier jobs that the run time is from; 0: it is the time limit")
    text = serializers.CharField(source="sentence")

    def get_low(self, found: CostEstimate) -> str:
        return as_decimal(found.low)

    def get_high(self, found: CostEstimate) -> str:
        return as_decimal(found.high)


class WhatIfSerializer(serializers.Serializer[dict[str, Any]]):
    verdict = serializers.ChoiceField([verdict.value for verdict in StartVerdict])
    cluster = serializers.CharField(help_text="cluster of the job")
    queue = serializers.CharField()
    candidates = ProspectSerializer(many=True, help_text="result of each cluster, for a federated queue")
    text = serializers.ListField(child=serializers.CharField(), help_text="all results as sentences")
    nodes = serializers.DictField(child=serializers.IntegerField(), help_text="pods by node, if the job starts now")
    evicts = OtherJobsSerializer(help_text="jobs whose pods would be evicted")
    reasons = serializers.ListField(child=serializers.JSONField(), help_text="pending reasons from the engine")
    place = serializers.IntegerField(help_text="position in the queue; 0: not pending")
    line = serializers.IntegerField(help_text="number of pending jobs in the queue, including this one")
    earliest_at = serializers.DateTimeField(allow_null=True, help_text="null: unknown")
    latest_at = serializers.DateTimeField(allow_null=True)
    after = OtherJobsSerializer(help_text="jobs that must end first")
    cost = CostEstimateSerializer(allow_null=True, help_text="null without a price list")
    changes = _ChangeSerializer(many=True, help_text="changes that each let the job start now, smallest first")


class WhatIfQuery(TenantQuery):
    eta = serializers.BooleanField(
        default=True,
        help_text="0: without the estimated start, which takes longest; for very large jobs also without changes",
    )


class WhatIfView(ApiView):
    queries = {"post": WhatIfQuery}
    parser_classes: tuple[type[BaseParser], ...] = (BoundedJSONParser, ManifestParser)  # type: ignore[assignment]
    throttle_classes = (PerPersonThrottle, WhatIfThrottle)

    @extend_schema(
        request={
            "application/json": OpenApiRequest(JOB_SPEC),
            "application/yaml": OpenApiRequest(OpenApiTypes.STR),
        },
        responses=WhatIfSerializer,
    )
    def post(self, request: Request) -> Response:
        """Whether a job would start now, and where. Otherwise the pending reason, the estimate, and helpful changes."""
        user, tenant = person(request), tenant_of(request)
        spec, _warnings, _secrets = parse_submission(request.data)
        with_eta = self.query["eta"]
        with tenancy.rights_read_once({}):
            route = jobs.route_for(spec=spec, tenant=tenant, user=user, is_timed=with_eta)
            answer = what_if.predict_draft(spec, tenant=tenant, user=user, queue=route.queue, with_eta=with_eta)
        accuracy = forecasts.accuracy(route.queue.pk)
        cost = job_costs.estimate(spec, queue=route.queue, owner_id=user.pk, now=clock.now())
        sentences = [
            descriptions.head(answer),
            *descriptions.sentences(answer, clock.now()),
            *_when(answer, accuracy, with_eta=with_eta),
            *([cost.sentence()] if cost else []),
        ]
        return respond(WhatIfSerializer(_document(spec, answer, sentences) | _where(route) | {"cost": cost}))


def _where(route: Route) -> dict[str, Any]:
    candidates = [one.as_data() for one in route.candidates]
    where = {"cluster": route.queue.cluster.name, "queue": route.queue.name}
    return {**where, "candidates": pending_changes(candidates, clock.now())}


def _when(answer: WhatIfResult, accuracy: Accuracy | None, *, with_eta: bool) -> list[str]:
    return descriptions.when(answer, clock.now(), accuracy) if with_eta else []


def _document(spec: JobSpec, answer: WhatIfResult, sentences: list[str]) -> dict[str, Any]:
    return {
        "verdict": answer.verdict,
        "text": sentences,
        "nodes": answer.nodes,
        "evicts": describe_others(answer.evicts),
        "reasons": answer.reasons,
        "place": answer.place,
        "line": answer.line,
        "earliest_at": answer.eta.earliest if answer.eta else None,
        "latest_at": answer.eta.latest if answer.eta else None,
        "after": describe_others(answer.after),
        "changes": [
            {"change": described.change, "text": described.text, "evicts": offer.evicted, "spec": _changed(spec, offer)}
            for described, offer in zip(
                descriptions.describe_suggestions(spec, answer.offers), answer.offers, strict=True
            )
        ],
    }


def _changed(spec: JobSpec, offer: Suggestion) -> dict[str, Any]:
    return apply_changes(spec, offer.changes).document()


def describe_others(others: OtherJobs) -> dict[str, Any]:
    """The visible jobs by name, and the number of the others, with the number of pods of all."""
    return {"known": [job.name for job in others.known], "unknown": others.unknown, "pods": others.pods}
