"""Endpoints to submit, list, read and change jobs."""

from collections.abc import Mapping
from typing import Any, cast
from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiRequest, PolymorphicProxySerializer, extend_schema
from rest_framework import serializers
from rest_framework.generics import ListAPIView
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from hekla.api.documents import validated
from hekla.api.openapi import TEXT
from hekla.api.parsers import BoundedJSONParser, ManifestParser, ManifestText
from hekla.api.v1.notifications import ChoiceQuery, choice_of
from hekla.api.v1.parameters import IDEMPOTENCY_KEY, SubmissionQuery, idempotency_key, tenant_of
from hekla.api.v1.schema import JOB_SIZE, JOB_SPEC
from hekla.api.v1.serializers import (
    CheckedSerializer,
    CopySerializer,
    JobActionSerializer,
    JobDetailSerializer,
    JobSerializer,
    PrioritySerializer,
    ScaledSerializer,
    SubmittedSerializer,
)
from hekla.api.views import ApiView, CursorPages, person, respond
from hekla.apps.accounts.scopes import Scope
from hekla.apps.jobs import filters, selectors, services
from hekla.apps.jobs.clone import clone_job
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Job
from hekla.apps.notifications import services as submitting
from hekla.apps.query_parameters import require_effective
from hekla.apps.tenancy import selectors as tenancy
from hekla.domain import formats, secrets
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import JobPhase
from hekla.domain.policies import LifecycleAction
from hekla.domain.scaling import JobScale, size_of
from hekla.lib import clock

_NUMBER = {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1}
_MOMENT = {"type": "string", "anyOf": [{"format": "date"}, {"format": "date-time"}, {"pattern": r"^[0-9]{1,4}[hdw]$"}]}
FILTERS = [
    OpenApiParameter("q", {**TEXT, "maxLength": 100}, description="part of the job name or of the owner name"),
    OpenApiParameter("phase", str, many=True, enum=[phase.value for phase in JobPhase]),
    OpenApiParameter("queue", TEXT),
    OpenApiParameter("tenant", TEXT, description="short name of the tenant"),
    OpenApiParameter("cluster", TEXT),
    OpenApiParameter("name", TEXT, description="exact name"),
    OpenApiParameter("owner", TEXT, description="user name of the submitter"),
    OpenApiParameter("kind", TEXT),
    OpenApiParameter("priority_min", _NUMBER),
    OpenApiParameter("priority_max", _NUMBER),
    *(
        OpenApiParameter(name, _MOMENT, description="a day (2026-03-01), a time, or an age (24h, 7d)")
        for name in ("submitted_after", "submitted_before", "finished_after", "finished_before")
    ),
    OpenApiParameter("failed_pods", str, enum=["yes"], description="only jobs with a failed pod"),
    OpenApiParameter(
        "reason", {**TEXT, "maxLength": 64}, description="failure reason of the job or of one of its pods"
    ),
    OpenApiParameter("mine", bool, enum=[True], description="only your jobs"),
    OpenApiParameter(
        "deleted", bool, enum=[True], description="deleted jobs whose history is kept, instead of the others"
    ),
    OpenApiParameter("sort", str, enum=filters.SORT_VALUES, default="-submitted"),
]
_KNOWN = {each.name: ("1", "true") if each.type is bool else each.enum or () for each in FILTERS}


class JobSubmissionQuery(SubmissionQuery, ChoiceQuery):
    """Where to submit, and the notification settings of the job."""


class ScaleQuery(serializers.Serializer[Any]):
    revision = serializers.IntegerField(
        min_value=1, max_value=2**31 - 1, required=False, help_text="reject if the job has changed since this revision"
    )


class JobPagination(CursorPages):
    """Cursor pagination in the order of the `sort` parameter, with the same orders as the page."""

    def get_ordering(self, request: Request, queryset: QuerySet[Job], view: APIView) -> tuple[str, ...]:  # noqa: ARG002
        by = filters.order(request.query_params)
        sign = "-" if by.descending else ""
        return f"{sign}{by.field}", f"{sign}id"


class JobListView(ApiView, ListAPIView[Job]):
    queries = {"get": None, "post": JobSubmissionQuery}
    writes = Scope.JOBS

    parser_classes: tuple[type[BaseParser], ...] = (BoundedJSONParser, ManifestParser)  # type: ignore[assignment]
    serializer_class = JobSerializer
    pagination_class = JobPagination

    def get_queryset(self) -> QuerySet[Job]:
        return filtered_jobs(self.request, "cursor", "limit")

    @extend_schema(parameters=FILTERS)
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:  # noqa: ANN401
        """The jobs that you can see, newest first."""
        return super().get(request, *args, **kwargs)

    @extend_schema(
        parameters=[IDEMPOTENCY_KEY],
        request={
            "application/json": OpenApiRequest(JOB_SPEC),
            "application/yaml": OpenApiRequest(OpenApiTypes.STR),
        },
        responses={
            200: PolymorphicProxySerializer(
                "Known", [CheckedSerializer, SubmittedSerializer], resource_type_field_name=None
            ),
            201: SubmittedSerializer,
        },
    )
    def post(self, request: Request) -> Response:
        """Submit a job: a JobSpec document, or a manifest in YAML.

        Manifests are those of Volcano, Kubeflow, Ray, Spark, Flink, Kubernetes and OpenPAI.

        201 for a new job; 200 for `dry_run` and for a repeated idempotency key.
        """
        with tenancy.rights_read_once({}):
            return self._submit(request)

    def _submit(self, request: Request) -> Response:
        user = person(request)
        tenant = tenant_of(request)
        key = idempotency_key(request)
        spec, warnings, values = parse_submission(request.data, seed=f"{user.pk}:{key}" if key else "")
        choice = choice_of(user, self.query)
        if self.query["dry_run"]:
            services.try_out(spec=spec, tenant=tenant, user=user, now=clock.now(), secrets=values)
            return respond(CheckedSerializer({"spec": spec.document(), "warnings": warnings}))
        now = clock.now()
        job = submitting.submit(spec=spec, tenant=tenant, user=user, now=now, key=key, secrets=values, choice=choice)
        is_new = job.submitted_at == now
        answer = SubmittedSerializer({"job": job, "warnings": warnings}, context={"is_new": is_new})
        return respond(answer, 201 if is_new else 200)


class JobDetailView(ApiView):
    writes = Scope.JOBS

    @extend_schema(responses=JobDetailSerializer)
    def get(self, request: Request, uid: UUID) -> Response:
        """One job: its spec, its pending reason, its pods."""
        return respond(JobDetailSerializer(selectors.get(uid, person(request))))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, uid: UUID) -> Response:
        """Delete a finished job and its pods, folders and addresses.

        Logs and history are kept for the retention of the tenant (`logs_until`, `history_until`).
        """
        user = person(request)
        services.delete(selectors.get(uid, user), user=user, now=clock.now())
        return Response(status=204)


class JobCopyView(ApiView):
    @extend_schema(responses=CopySerializer)
    def get(self, request: Request, uid: UUID) -> Response:
        """The request to run the job again: its JobSpec with a free name, and the names of its secrets."""
        job = selectors.get(uid, person(request))
        return respond(CopySerializer(clone_job(job, job.tenant)))


class JobActionsView(ApiView):
    writes = Scope.JOBS

    @extend_schema(request=JobActionSerializer, responses=JobDetailSerializer)
    def post(self, request: Request, uid: UUID) -> Response:
        """Abort, resume, restart, complete or terminate a job, or restart a part of it."""
        user = person(request)
        job, values = selectors.get(uid, user), validated(JobActionSerializer(data=request.data))
        action, part = LifecycleAction(values["action"]), {"task": values["task"], "index": values["index"]}
        return respond(JobDetailSerializer(services.command(job, action, **part, user=user, now=clock.now())))


class JobScaleView(ApiView):
    queries = {"patch": ScaleQuery}
    writes = Scope.JOBS

    @extend_schema(responses={200: JOB_SIZE})
    def get(self, request: Request, uid: UUID) -> Response:
        """The replicas and the minimums of tasks."""
        return Response(size_of(spec_of(selectors.get(uid, person(request)))).model_dump(mode="json"))

    @extend_schema(
        request={"application/json": OpenApiRequest(JOB_SIZE)},
        responses=ScaledSerializer,
    )
    def patch(self, request: Request, uid: UUID) -> Response:
        """Change the replicas and the minimums of tasks. Omitted fields stay unchanged."""
        user = person(request)
        job, size = selectors.get(uid, user), JobScale.parse(cast("Mapping[str, Any]", request.data))
        revision = self.query.get("revision")
        job = services.scale(job, size, user=user, now=clock.now(), expected_revision=revision)
        return respond(ScaledSerializer({"job": job, "warnings": services.scaling_remarks(job)}))


class JobPriorityView(ApiView):
    writes = Scope.JOBS

    @extend_schema(responses=PrioritySerializer)
    def get(self, request: Request, uid: UUID) -> Response:
        """A job's priority."""
        return respond(PrioritySerializer(selectors.get(uid, person(request))))

    @extend_schema(request=PrioritySerializer, responses=JobDetailSerializer)
    def patch(self, request: Request, uid: UUID) -> Response:
        """Change a job's priority, from the next scheduling cycle on."""
        user = person(request)
        job, values = selectors.get(uid, user), validated(PrioritySerializer(data=request.data, partial=True))
        priority, revision = values.get("priority", job.priority), values.get("revision")
        return respond(
            JobDetailSerializer(
                services.set_priority(job, priority, user=user, now=clock.now(), expected_revision=revision)
            )
        )


def filtered_jobs(request: Request, *others: str) -> QuerySet[Job]:
    """The jobs that the person can see and that match the query parameters (`FILTERS`).

    Raises Invalid, also for parameters without effect, except those with the names `others`.
    """
    user, query = person(request), request.query_params.copy()
    for name in others:
        query.pop(name, None)
    require_effective(query, _KNOWN)
    if "mine" in query:
        query["whose"] = "mine"
    jobs = selectors.deleted_for(user) if "deleted" in query else selectors.visible_to(user)
    return filters.narrowed(jobs, query, user)


def parse_submission(
    body: Any,  # noqa: ANN401  (output of any parser)
    *,
    seed: str = "",
) -> tuple[JobSpec, tuple[str, ...], Mapping[str, str]]:
    """The job spec, warnings for fields without effect, and the secrets (in JSON beside the spec, as `secrets`).

    With a seed, a generated name is always the same.
    """
    if isinstance(body, ManifestText):
        loaded = formats.load(body["text"], seed=seed)
        return loaded.spec, loaded.warnings, loaded.secrets
    values = secrets.parse(body["secrets"]) if "secrets" in body else {}
    spec = JobSpec.parse({name: value for name, value in body.items() if name != "secrets"})
    return spec, spec.remarks, values
