"""Endpoints of schedules and their runs."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
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
from hekla.api.v1.parameters import EffectiveFilters, NameAndTenant, SubmissionQuery, tenant_of, undone_if
from hekla.api.v1.schema import SCHEDULE_CHANGE, SCHEDULE_SPEC
from hekla.api.views import ApiView, CursorPages, DeletableViewSet, person, respond
from hekla.apps.accounts.scopes import Scope
from hekla.apps.schedules import overview, selectors, services
from hekla.apps.schedules.models import Schedule, ScheduleRun
from hekla.domain import formats
from hekla.domain.schedules import ScheduleSpec
from hekla.lib import clock

_NEXT = 5
_ACTIONS = ("run", "suspend", "resume")


class _ByName(CursorPages):
    ordering = ("name", "id")


class RunSerializer(serializers.ModelSerializer[ScheduleRun]):
    """The result of a run, or of several missed runs."""

    job = serializers.CharField(source="job.name", default=None, allow_null=True)
    job_uid = serializers.UUIDField(source="job.uid", default=None, allow_null=True)
    phase = serializers.CharField(source="job.phase", default=None, allow_null=True)
    sentence = serializers.SerializerMethodField()

    class Meta:
        model = ScheduleRun
        fields = ["due_at", "until", "count", "by_hand", "outcome", "reason", "sentence", "job", "job_uid", "phase"]

    def get_sentence(self, run: ScheduleRun) -> str:
        """The reason if there was no run; otherwise empty."""
        return overview.why(run)


class ScheduleSerializer(serializers.ModelSerializer[Schedule]):
    """A schedule in a list."""

    tenant = serializers.CharField(source="tenant.slug")
    owner = serializers.CharField(source="owner.username")
    cron = serializers.CharField(source="spec.cron")
    time_zone = serializers.CharField(source="spec.time_zone", default="UTC")

    class Meta:
        model = Schedule
        fields = ["uid", "name", "tenant", "owner", "cron", "time_zone", "is_suspended", "next_at", "created_at"]


class ScheduleDetailSerializer(ScheduleSerializer):
    """A schedule with its spec, the next runs, and the results of the last ones."""

    spec = serializers.JSONField()
    next_times = serializers.SerializerMethodField()
    runs = serializers.SerializerMethodField()

    class Meta(ScheduleSerializer.Meta):
        fields = [*ScheduleSerializer.Meta.fields, "spec", "next_times", "runs"]

    @extend_schema_field(serializers.ListField(child=serializers.DateTimeField()))
    def get_next_times(self, schedule: Schedule) -> Any:  # noqa: ANN401  (serialized data)
        """The next runs; empty while suspended."""
        return [] if schedule.is_suspended else selectors.spec_of(schedule).next_times(clock.now(), _NEXT)

    @extend_schema_field(RunSerializer(many=True))
    def get_runs(self, schedule: Schedule) -> Any:  # noqa: ANN401  (serialized data)
        """The newest first."""
        return RunSerializer(selectors.runs(schedule)[: overview.MOST_RUNS], many=True).data


class MadeScheduleSerializer(serializers.Serializer[Any]):
    schedule = ScheduleDetailSerializer()
    warnings = serializers.ListField(child=serializers.CharField())


class ScheduleActionSerializer(serializers.Serializer[Any]):
    action = serializers.ChoiceField(choices=_ACTIONS)


@extend_schema_view(
    list=extend_schema(description="The schedules that you can see, by name."),
    retrieve=extend_schema(description="One schedule: its spec, its next runs and the results of the last ones."),
    destroy=extend_schema(description="Delete a schedule. Its jobs stay."),
)
class ScheduleViewSet(DeletableViewSet[Schedule]):
    queries = {"list": None, "create": SubmissionQuery}
    writes = Scope.JOBS

    parser_classes: tuple[type[BaseParser], ...] = (BoundedJSONParser, ManifestParser)  # type: ignore[assignment]
    list_serializer_class = ScheduleSerializer
    serializer_class = ScheduleDetailSerializer
    pagination_class = _ByName
    queryset = Schedule.objects.none()  # for the filters in the OpenAPI schema
    filter_backends = (EffectiveFilters,)
    filterset_class = NameAndTenant

    def get_queryset(self) -> QuerySet[Schedule]:
        return selectors.visible_to(person(self.request))

    def get_object(self) -> Schedule:
        return selectors.get(self.kwargs["uid"], person(self.request))

    @extend_schema(
        request={
            "application/json": OpenApiRequest(SCHEDULE_SPEC),
            "application/yaml": OpenApiRequest(OpenApiTypes.STR),
        },
        responses={200: MadeScheduleSerializer, 201: MadeScheduleSerializer},
    )
    def create(self, request: Request) -> Response:
        """Create a schedule: a ScheduleSpec document, or Volcano's CronJob in YAML. 200 for `dry_run`."""
        tenant = tenant_of(request)
        spec, warnings = _spec_in(request.data)
        with undone_if(self.query["dry_run"]) as status:
            schedule = services.create(spec=spec, tenant=tenant, user=person(request), now=clock.now())
            return respond(MadeScheduleSerializer({"schedule": schedule, "warnings": warnings}), status)

    @extend_schema(request={"application/json": OpenApiRequest(SCHEDULE_CHANGE)}, responses=ScheduleDetailSerializer)
    def partial_update(self, request: Request, uid: UUID) -> Response:  # noqa: ARG002
        """Change the given fields, except the name. You become the owner of its future jobs."""
        document: Any = request.data
        return self.respond(services.change(self.get_object(), document, user=person(request), now=clock.now()))

    def perform_destroy(self, schedule: Schedule) -> None:
        services.delete(schedule, user=person(self.request), now=clock.now())


class ScheduleActionsView(ApiView):
    """A separate view from the schedule, because it accepts no manifests."""

    writes = Scope.JOBS

    @extend_schema(request=ScheduleActionSerializer, responses=ScheduleDetailSerializer)
    def post(self, request: Request, uid: UUID) -> Response:
        """Start a run now, suspend, or resume."""
        user = person(request)
        schedule = selectors.get(uid, user)
        action = validated(ScheduleActionSerializer(data=request.data))["action"]
        if action == "run":
            services.run_now(schedule, user=user, now=clock.now())
        else:
            suspended = action == "suspend"
            schedule = services.set_suspended(schedule, suspended=suspended, user=user, now=clock.now())
        return respond(ScheduleDetailSerializer(schedule))


def _spec_in(body: Any) -> tuple[ScheduleSpec, tuple[str, ...]]:  # noqa: ANN401  (the output of any parser)
    if isinstance(body, ManifestText):
        loaded = formats.load_schedule(body["text"])
        return loaded.spec, loaded.warnings
    spec = ScheduleSpec.parse(body)
    return spec, tuple(f"job.{remark}" for remark in spec.job.remarks)
