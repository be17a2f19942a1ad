"""Endpoints of batches: many jobs in one submission."""

from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import (
    OpenApiRequest,
    extend_schema,
    extend_schema_field,
    extend_schema_view,
)
from rest_framework import serializers
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.documents import validated
from hekla.api.parsers import BoundedJSONParser, ManifestParser, ManifestText
from hekla.api.v1.parameters import EffectiveFilters, NameAndTenant, SubmissionQuery, tenant_of
from hekla.api.v1.runs import BestSerializer, ComparedRunSerializer, RankingQuery, best_of
from hekla.api.v1.schema import SWEEP_SPEC
from hekla.api.views import ApiView, CursorPages, ResourceViewSet, person, respond
from hekla.apps.accounts.models import User
from hekla.apps.accounts.scopes import Scope
from hekla.apps.batches import selectors, services
from hekla.apps.batches.models import Batch
from hekla.apps.batches.services import SweepJob
from hekla.apps.job_metrics import ranking
from hekla.apps.job_metrics.ranking import Run
from hekla.apps.tenancy.models import Tenant
from hekla.domain import formats
from hekla.domain.errors import Invalid, Problem
from hekla.domain.sweeps import SweepSpec
from hekla.lib import clock

_ACTIONS = ("stop", "retry")
_MOST_IN_PREVIEW = 5
_MOST_WARNINGS = 20


class BatchQuery(SubmissionQuery):
    name = serializers.CharField(required=False, help_text="name of the batch, for manifests")


class BatchSerializer(serializers.ModelSerializer[Batch]):
    """A batch in a list."""

    tenant = serializers.CharField(source="tenant.slug")
    owner = serializers.CharField(source="owner.username")
    kind = serializers.CharField(help_text="sweep or file")

    class Meta:
        model = Batch
        fields = ["uid", "name", "tenant", "owner", "kind", "submitted_at"]


class BatchDetailSerializer(BatchSerializer):
    """A batch with its jobs, the number of jobs in each phase, and the best job.

    `varying`: the parameters that differ between the jobs; `metrics`: the names of the metrics that they print, at most
    200.
    """

    ended_at = serializers.DateTimeField(allow_null=True)
    phases = serializers.SerializerMethodField()
    varying = serializers.SerializerMethodField()
    metrics = serializers.SerializerMethodField()
    best = serializers.SerializerMethodField()
    jobs = serializers.SerializerMethodField()
    runs: Sequence[Run] = ()

    class Meta(BatchSerializer.Meta):
        fields = [*BatchSerializer.Meta.fields, "ended_at", "phases", "varying", "metrics", "best", "jobs"]

    def to_representation(self, batch: Batch) -> dict[str, Any]:
        """The batch, with its jobs read once."""
        self.runs = selectors.runs(batch)
        return super().to_representation(batch)

    def get_phases(self, _batch: Batch) -> dict[str, int]:
        """Number of jobs by phase."""
        return dict(Counter(run.job.phase for run in self.runs))

    def get_varying(self, _batch: Batch) -> list[str]:
        """In the order of the sweep."""
        return ranking.varying_parameters(self.runs)

    def get_metrics(self, _batch: Batch) -> list[str]:
        """First those that most jobs have."""
        return ranking.metric_names(self.runs)

    @extend_schema_field(BestSerializer(allow_null=True))
    def get_best(self, _batch: Batch) -> dict[str, Any] | None:
        """By the metric of the query, or by the usual one; null if no completed job has printed it."""
        return best_of(self.runs, self.context.get("ranking", {}))

    @extend_schema_field(ComparedRunSerializer(many=True))
    def get_jobs(self, _batch: Batch) -> Any:  # noqa: ANN401  (serialized data)
        """In the order of their numbers."""
        return ComparedRunSerializer(self.runs, many=True).data


class PreviewSerializer(serializers.Serializer[Any]):
    """The response to `dry_run`: the number of jobs, and the first few."""

    size = serializers.IntegerField()
    jobs = serializers.ListField(child=serializers.JSONField())
    warnings = serializers.ListField(child=serializers.CharField())


class SubmittedBatchSerializer(serializers.Serializer[Any]):
    batch = BatchDetailSerializer()
    warnings = serializers.ListField(child=serializers.CharField())


class BatchActionSerializer(serializers.Serializer[Any]):
    action = serializers.ChoiceField(choices=_ACTIONS)


@extend_schema_view(
    list=extend_schema(description="The batches that you can see, newest first."),
    retrieve=extend_schema(description="One batch with its jobs, their parameters and metrics, and the best of them."),
)
class BatchViewSet(ResourceViewSet[Batch]):
    queries = {"list": None, "create": BatchQuery, "retrieve": RankingQuery}
    writes = Scope.JOBS

    parser_classes: tuple[type[BaseParser], ...] = (BoundedJSONParser, ManifestParser)  # type: ignore[assignment]
    list_serializer_class = BatchSerializer
    serializer_class = BatchDetailSerializer
    pagination_class = CursorPages
    queryset = Batch.objects.none()  # for the filters in the OpenAPI schema
    filter_backends = (EffectiveFilters,)
    filterset_class = NameAndTenant

    def get_queryset(self) -> QuerySet[Batch]:
        return selectors.visible_to(person(self.request))

    def get_serializer_context(self) -> dict[str, Any]:
        """With the ranking that the query chooses."""
        ranked = {"ranking": self.query} if self.action == "retrieve" else {}
        return {**super().get_serializer_context(), **ranked}

    def get_object(self) -> Batch:
        return selectors.get(self.kwargs["uid"], person(self.request))

    @extend_schema(
        request={
            "application/json": OpenApiRequest(SWEEP_SPEC),
            "application/yaml": OpenApiRequest(OpenApiTypes.STR),
        },
        responses={
            200: PreviewSerializer,
            201: SubmittedBatchSerializer,
        },
    )
    def create(self, request: Request) -> Response:
        """Submit many jobs, all or none: a SweepSpec document, or manifests of any kind, separated by `---`."""
        user = person(request)
        tenant = tenant_of(request)
        is_dry = self.query["dry_run"]
        if isinstance(request.data, ManifestText):
            return _file(request, self.query.get("name", ""), tenant, user, is_dry=is_dry)
        return _sweep(request, tenant, user, is_dry=is_dry)


class BatchActionsView(ApiView):
    writes = Scope.JOBS

    @extend_schema(request=BatchActionSerializer, responses=BatchDetailSerializer)
    def post(self, request: Request, uid: UUID) -> Response:
        """Stop all jobs, or submit the failed ones again."""
        user = person(request)
        batch = selectors.get(uid, user)
        action = validated(BatchActionSerializer(data=request.data))["action"]
        act = services.stop if action == "stop" else services.retry_failed
        act(batch, user=user, now=clock.now())
        return respond(BatchDetailSerializer(batch))


def _sweep(request: Request, tenant: Tenant, user: User, *, is_dry: bool) -> Response:
    document: Any = request.data
    spec = SweepSpec.parse(document)
    warnings = [f"job.{remark}" for remark in spec.job.remarks]
    if is_dry:
        return _preview(services.check_sweep(spec=spec, tenant=tenant, user=user, now=clock.now()), warnings)
    return _made(services.submit_sweep(spec=spec, tenant=tenant, user=user, now=clock.now()), warnings)


def _file(request: Request, name: str, tenant: Tenant, user: User, *, is_dry: bool) -> Response:
    if not name:
        raise Invalid([Problem("name", _("Manifests need a batch name, for example ?name=mine."))])
    body: Any = request.data
    loaded = formats.load_many(body["text"])
    specs = [one.spec for one in loaded]
    warnings = [f"{one.spec.name}: {warning}" for one in loaded for warning in one.warnings]
    if is_dry:
        found = services.check_file(name=name, specs=specs, tenant=tenant, user=user, now=clock.now())
        return _preview(found, warnings)
    return _made(services.submit_file(name=name, specs=specs, tenant=tenant, user=user, now=clock.now()), warnings)


def _preview(found: list[SweepJob], warnings: list[str]) -> Response:
    jobs = [{"parameters": one.parameters, "spec": one.spec.document()} for one in found[:_MOST_IN_PREVIEW]]
    return respond(PreviewSerializer({"size": len(found), "jobs": jobs, "warnings": warnings[:_MOST_WARNINGS]}))


def _made(batch: Batch, warnings: list[str]) -> Response:
    return respond(SubmittedBatchSerializer({"batch": batch, "warnings": warnings[:_MOST_WARNINGS]}), 201)
