"""Endpoints of reports: their settings, contents, files and history."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiRequest, extend_schema, extend_schema_field, extend_schema_view
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.arrays import ArrayQuery, array
from hekla.api.renderers import ApiRenderer
from hekla.api.v1.files import FileRenderer
from hekla.api.v1.schema import REPORT_CHANGE, REPORT_SPEC
from hekla.api.views import ApiView, CursorPages, DeletableViewSet, person, respond
from hekla.apps.accounts.scopes import Scope
from hekla.apps.reports import composing, html, pdf, sections, selectors, services
from hekla.apps.reports.contents import ReportContents
from hekla.apps.reports.models import Report, ReportCopy, ReportRun
from hekla.apps.streaming import FileResponse
from hekla.domain.reports import ReportSpan, ReportSpec
from hekla.lib import clock

_MOST = 100
_Write = Callable[[ReportContents, str], str | bytes]
_WRITERS: dict[str, tuple[_Write, str]] = {
    "html": (html.document, "text/html"),
    "pdf": (pdf.document, "application/pdf"),
}


class ReportPeriodQuery(serializers.Serializer[Any]):
    run = serializers.UUIDField(required=False, help_text="the period of this run; default: the last whole period")


class ReportFileQuery(ReportPeriodQuery):
    kind = serializers.ChoiceField(choices=sorted(_WRITERS), default="pdf")


class ReportSerializer(serializers.ModelSerializer[Report]):
    """A report in a list. `stopped`: why it is not sent any more; empty: no reason. `next_at`: null: only by hand."""

    owner = serializers.CharField(source="owner.username")
    stopped = serializers.CharField(allow_blank=True)

    class Meta:
        model = Report
        fields = ["uid", "name", "owner", "is_paused", "stopped", "next_at", "created_at"]


class ReportDetailSerializer(ReportSerializer):
    """A report with its spec."""

    spec = serializers.SerializerMethodField()

    class Meta(ReportSerializer.Meta):
        fields = [*ReportSerializer.Meta.fields, "spec"]

    @extend_schema_field(REPORT_SPEC)
    def get_spec(self, report: Report) -> Any:  # noqa: ANN401  (serialized data)
        """As it is sent to create a report. Of the recipients, only who may change it sees others."""
        return selectors.spec_for(report, person(self.context["request"])).document()


class ReportCopySerializer(serializers.ModelSerializer[ReportCopy]):
    """What became of a run for a recipient. `obstacle`: why they were left out. `error`: why the mail is not sent."""

    username = serializers.CharField(source="user.username")
    obstacle = serializers.CharField(allow_blank=True)

    class Meta:
        model = ReportCopy
        fields = ["username", "obstacle", "has_mail", "sent_at", "failed_at", "error"]


class ReportRunSerializer(serializers.ModelSerializer[ReportRun]):
    """An occasion at which the report was sent. Only who may change it sees the copies of other people."""

    copies = ReportCopySerializer(many=True)

    class Meta:
        model = ReportRun
        fields = ["uid", "due_at", "by_hand", "begin", "end", "created_at", "copies"]


class ReportTableSerializer(serializers.Serializer[Any]):
    heads = serializers.ListField(child=serializers.CharField())
    rows = serializers.ListField(child=serializers.ListField(child=serializers.CharField(allow_blank=True)))
    foot = serializers.ListField(child=serializers.CharField(allow_blank=True))


class ReportPartSerializer(serializers.Serializer[Any]):
    title = serializers.CharField()
    text = serializers.CharField(allow_blank=True)
    table = ReportTableSerializer(allow_null=True)


class ReportContentsSerializer(serializers.Serializer[Any]):
    """What you may see of a report, in words."""

    title = serializers.CharField()
    lines = serializers.ListField(child=serializers.CharField())
    notices = serializers.ListField(child=serializers.CharField())
    parts = ReportPartSerializer(many=True)


class ReportSectionSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    meaning = serializers.CharField()


class _ByName(CursorPages):
    ordering = ("name", "id")


@extend_schema_view(
    list=extend_schema(description="The reports that you own or get, by name."),
    retrieve=extend_schema(description="One report, with its spec."),
    destroy=extend_schema(description="Delete a report and its history."),
)
class ReportViewSet(DeletableViewSet[Report]):
    writes = Scope.MANAGE

    list_serializer_class = ReportSerializer
    serializer_class = ReportDetailSerializer
    pagination_class = _ByName

    def get_queryset(self) -> QuerySet[Report]:
        return selectors.visible_to(person(self.request))

    def get_object(self) -> Report:
        return selectors.get(self.kwargs["uid"], person(self.request))

    @extend_schema(request={"application/json": OpenApiRequest(REPORT_SPEC)}, responses={201: ReportDetailSerializer})
    def create(self, request: Request) -> Response:
        """Create a report of your own."""
        document: Any = request.data
        report = services.create(spec=ReportSpec.parse(document), user=person(request), now=clock.now())
        return self.respond(report, 201)

    @extend_schema(request={"application/json": OpenApiRequest(REPORT_CHANGE)}, responses=ReportDetailSerializer)
    def partial_update(self, request: Request, uid: UUID) -> Response:  # noqa: ARG002
        """Change the given fields. From then on the report is yours."""
        document: Any = request.data
        report = self.get_object()
        services.require_right(report, person(request))
        return self.respond(services.change(report, document, user=person(request), now=clock.now()))

    def perform_destroy(self, report: Report) -> None:
        services.delete(report, user=person(self.request), now=clock.now())


class ReportPauseView(ApiView):
    writes = Scope.MANAGE

    @extend_schema(request=None, responses=ReportSerializer)
    def post(self, request: Request, uid: UUID) -> Response:
        """Pause a report."""
        return self._set(request, uid, paused=True)

    @extend_schema(responses=ReportSerializer)
    def delete(self, request: Request, uid: UUID) -> Response:
        """Resume a report. What was due meanwhile is not sent."""
        return self._set(request, uid, paused=False)

    def _set(self, request: Request, uid: UUID, *, paused: bool) -> Response:
        report = selectors.get(uid, person(request))
        return respond(ReportSerializer(services.pause(report, paused=paused, user=person(request), now=clock.now())))


class ReportLeaveView(ApiView):
    writes = Scope.MANAGE

    @extend_schema(request=None, responses={204: None})
    def post(self, request: Request, uid: UUID) -> Response:
        """Take yourself off the recipients of a report."""
        services.leave(selectors.get(uid, person(request)), user=person(request), now=clock.now())
        return Response(status=204)


class ReportRunsView(ApiView):
    queries = {"get": ArrayQuery}
    writes = Scope.MANAGE

    @extend_schema(responses=ReportRunSerializer(many=True))
    def get(self, request: Request, uid: UUID) -> Response:
        """The occasions at which the report was sent: the newest 100."""
        report = selectors.get(uid, person(request))
        return array(request, list(selectors.runs(report, person(request))[:_MOST]), ReportRunSerializer)

    @extend_schema(request=None, responses={201: ReportRunSerializer})
    def post(self, request: Request, uid: UUID) -> Response:
        """Send the report of the last whole period now."""
        report = selectors.get(uid, person(request))
        run = services.send_now(report, user=person(request), now=clock.now())
        return respond(ReportRunSerializer(run), 201)


class ReportContentsView(ApiView):
    queries = {"get": ReportPeriodQuery}

    @extend_schema(responses=ReportContentsSerializer)
    def get(self, request: Request, uid: UUID) -> Response:
        """What you may see of the report."""
        report = selectors.get(uid, person(request))
        spec = selectors.spec_of(report)
        span = _span(report, spec, self.query.get("run"))
        contents = composing.compose(spec, span, person(request), now=clock.now())
        return respond(ReportContentsSerializer(contents))


class ReportFileView(ApiView):
    queries = {"get": ReportFileQuery}
    renderer_classes = (ApiRenderer, FileRenderer)

    @extend_schema(responses={(200, "application/octet-stream"): OpenApiTypes.BINARY})
    def get(self, request: Request, uid: UUID) -> StreamingHttpResponse:
        """What you may see of the report, as one HTML file or as PDF."""
        report, kind = selectors.get(uid, person(request)), self.query["kind"]
        spec = selectors.spec_of(report)
        span = _span(report, spec, self.query.get("run"))
        contents = composing.compose(spec, span, person(request), now=clock.now())
        write, media_type = _WRITERS[kind]
        found = write(contents, composing.address(report))
        body = found.encode() if isinstance(found, str) else found
        return FileResponse(iter([body]), composing.file_name(spec, span, kind), media_type)


class ReportSectionsView(ApiView):
    queries = {"get": ArrayQuery}

    @extend_schema(responses=ReportSectionSerializer(many=True))
    def get(self, request: Request) -> Response:
        """The sections that a report can have."""
        found = [{"name": name, "meaning": str(section.label)} for name, section in sections.SECTIONS.items()]
        return array(request, found, ReportSectionSerializer)


def _span(report: Report, spec: ReportSpec, run: UUID | None) -> ReportSpan:
    return spec.span(clock.now()) if run is None else selectors.span_of(report, run)
