"""Endpoints of flows and job templates."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django_filters import MultipleChoiceFilter
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import (
    OpenApiRequest,
    PolymorphicProxySerializer,
    extend_schema,
    extend_schema_view,
)
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.parsers import BoundedJSONParser, ManifestParser, ManifestText
from hekla.api.v1.flow_serializers import (
    CheckedFlowSerializer,
    FlowDetailSerializer,
    FlowSerializer,
    SavedTemplatesSerializer,
    StartedSerializer,
    TemplateDetailSerializer,
    TemplateSerializer,
)
from hekla.api.v1.parameters import (
    IDEMPOTENCY_KEY,
    EffectiveFilters,
    NameAndTenant,
    SubmissionQuery,
    TenantQuery,
    idempotency_key,
    tenant_of,
)
from hekla.api.v1.schema import FLOW_SPEC, JOB_SPEC
from hekla.api.views import ApiView, CursorPages, DeletableViewSet, person, respond
from hekla.apps.accounts.scopes import Scope
from hekla.apps.flows import selectors, services
from hekla.apps.flows.models import Flow, JobTemplate
from hekla.domain import formats
from hekla.domain.errors import HeklaError, Invalid, Problem
from hekla.domain.flows import FlowSpec
from hekla.domain.formats import LoadedFlow
from hekla.domain.formats.fields import Findings
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import FlowPhase
from hekla.lib import clock


class NewestFlowsFirst(CursorPages):
    ordering = ("-started_at", "-id")


class FlowsByName(CursorPages):
    ordering = ("name", "id")


class FlowFilter(NameAndTenant):
    phase = MultipleChoiceFilter(choices=[(phase.value, phase.value) for phase in FlowPhase], distinct=False)


@extend_schema_view(
    list=extend_schema(description="The flows that you can see, newest first."),
    retrieve=extend_schema(description="One flow: its steps, their jobs, and their dependencies."),
    destroy=extend_schema(description="Delete a finished flow from the lists. Its jobs stay."),
)
class FlowViewSet(DeletableViewSet[Flow]):
    queries = {"list": None, "create": SubmissionQuery}
    writes = Scope.JOBS

    parser_classes: tuple[type[BaseParser], ...] = (BoundedJSONParser, ManifestParser)  # type: ignore[assignment]
    list_serializer_class = FlowSerializer
    serializer_class = FlowDetailSerializer
    pagination_class = NewestFlowsFirst
    queryset = Flow.objects.none()  # for the filters in the OpenAPI schema
    filter_backends = (EffectiveFilters,)
    filterset_class = FlowFilter

    def get_queryset(self) -> QuerySet[Flow]:
        return selectors.visible_to(person(self.request)).defer("spec")

    def get_object(self) -> Flow:
        return selectors.get(self.kwargs["uid"], person(self.request))

    @extend_schema(
        parameters=[IDEMPOTENCY_KEY],
        request={"application/json": OpenApiRequest(FLOW_SPEC), "application/yaml": OpenApiRequest(OpenApiTypes.STR)},
        responses={
            200: PolymorphicProxySerializer(
                "KnownFlow", [CheckedFlowSerializer, StartedSerializer], resource_type_field_name=None
            ),
            201: StartedSerializer,
        },
    )
    def create(self, request: Request) -> Response:
        """Start a flow: a FlowSpec document, or Volcano's JobFlow in YAML, with JobTemplates that are saved first.

        201 for a new flow; 200 for `dry_run` and for a repeated idempotency key.
        """
        tenant, loaded = tenant_of(request), _flow_in(request.data)
        owner: dict[str, Any] = {"tenant": tenant, "user": person(request)}
        assert loaded.flow is not None  # noqa: S101  (`_flow_in` raises otherwise)
        try:
            if self.query["dry_run"]:
                found = services.check(spec=loaded.flow, more=loaded.templates, **owner)
                jobs = [{"step": step, "spec": spec.document()} for step, spec in found.jobs.items()]
                return respond(CheckedFlowSerializer({"jobs": jobs, "warnings": loaded.warnings + found.warnings}))
            now = clock.now()
            applied = services.apply(
                templates=loaded.templates, flow=loaded.flow, now=now, key=idempotency_key(request), **owner
            )
        except HeklaError as error:
            raise loaded.translate_paths(error) from error
        assert applied.flow is not None  # noqa: S101  (a flow was passed)
        answer = {"flow": applied.flow, "warnings": loaded.warnings + applied.warnings}
        return respond(StartedSerializer(answer), 201 if applied.flow.started_at == now else 200)

    def perform_destroy(self, flow: Flow) -> None:
        services.delete(flow, user=person(self.request), now=clock.now())


class StopFlowView(ApiView):
    writes = Scope.JOBS

    @extend_schema(request=None, responses=FlowDetailSerializer)
    def post(self, request: Request, uid: UUID) -> Response:
        """Start no further step, and stop the running jobs."""
        user = person(request)
        return respond(FlowDetailSerializer(services.stop(selectors.get(uid, user), user=user, now=clock.now())))


@extend_schema_view(
    list=extend_schema(description="The templates that you can see, by name."),
    retrieve=extend_schema(description="One template: its job as a document and as a manifest."),
    destroy=extend_schema(description="Delete a template. Started flows have their own copies."),
)
class TemplateViewSet(DeletableViewSet[JobTemplate]):
    queries = {"list": None, "create": TenantQuery}
    writes = Scope.JOBS

    parser_classes: tuple[type[BaseParser], ...] = (BoundedJSONParser, ManifestParser)  # type: ignore[assignment]
    list_serializer_class = TemplateSerializer
    serializer_class = TemplateDetailSerializer
    pagination_class = FlowsByName
    queryset = JobTemplate.objects.none()  # for the filters in the OpenAPI schema
    filter_backends = (EffectiveFilters,)
    filterset_class = NameAndTenant

    def get_queryset(self) -> QuerySet[JobTemplate]:
        return selectors.templates(person(self.request)).defer("spec")

    def get_object(self) -> JobTemplate:
        return selectors.template(self.kwargs["uid"], person(self.request))

    @extend_schema(
        request={"application/json": OpenApiRequest(JOB_SPEC), "application/yaml": OpenApiRequest(OpenApiTypes.STR)},
        responses={201: SavedTemplatesSerializer},
    )
    def create(self, request: Request) -> Response:
        """Save a JobSpec document, or Volcano's JobTemplates in YAML. They replace templates of the same name."""
        specs, warnings = _templates_in(request.data)
        tenant, user = tenant_of(request), person(request)
        applied = services.apply(templates=specs, flow=None, tenant=tenant, user=user, now=clock.now())
        return respond(SavedTemplatesSerializer({"templates": applied.templates, "warnings": warnings}), 201)

    def perform_destroy(self, template: JobTemplate) -> None:
        services.delete_template(template, user=person(self.request), now=clock.now())


def _flow_in(body: Any) -> LoadedFlow:  # noqa: ANN401  (the output of any parser)
    if not isinstance(body, ManifestText):
        return LoadedFlow((), FlowSpec.parse(body), (), Findings())
    loaded = formats.load_flow(body["text"])
    if loaded.flow is None:
        raise Invalid([Problem("", _("The text holds no JobFlow. Send templates alone to /api/v1/templates."))])
    return loaded


def _templates_in(body: Any) -> tuple[tuple[JobSpec, ...], tuple[str, ...]]:  # noqa: ANN401
    if not isinstance(body, ManifestText):
        spec = JobSpec.parse(body)
        return (spec,), spec.remarks
    loaded = formats.load_flow(body["text"])
    if loaded.flow is not None:
        raise Invalid([Problem("", _("The text holds a JobFlow. Send flows to /api/v1/flows."))])
    return loaded.templates, loaded.warnings
