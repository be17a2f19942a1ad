"""Jobs: submit, list, look, act."""

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

from hekla.api.parsers import BoundedJSON, Manifest, ManifestText
from hekla.api.v1.asked import is_dry_run, key_of, tenant_of
from hekla.api.v1.schema import JOB_SIZE, JOB_SPEC
from hekla.api.v1.serializers import (
    ActionSerializer,
    CheckedSerializer,
    JobDetailSerializer,
    JobSerializer,
    ScaledSerializer,
    SubmittedSerializer,
)
from hekla.api.views import Paging, View, checked, person, told
from hekla.apps.jobs import selectors, services
from hekla.apps.jobs.models import Job
from hekla.domain import formats, secrets
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import JobPhase
from hekla.domain.policies import Action
from hekla.domain.scaling import Size
from hekla.lib import clock

_FILTERS = {"phase": "phase__in", "queue": "queue__name", "tenant": "tenant__slug", "name": "name"}
_PARAMETERS = [
    OpenApiParameter("phase", str, many=True, enum=[phase.value for phase in JobPhase]),
    OpenApiParameter("queue", str),
    OpenApiParameter("tenant", str, description="the tenant's short name"),
    OpenApiParameter("name", str, description="exactly this name"),
    OpenApiParameter("mine", bool, description="only your own"),
    OpenApiParameter("deleted", bool, description="those that were deleted and are still kept, in place of the others"),
]
SUBMISSION = [
    OpenApiParameter("tenant", str, description="short name; without it the first tenant that you belong to"),
    OpenApiParameter("dry_run", bool, description="judge the job, take nothing in"),
    OpenApiParameter(
        "Idempotency-Key", str, OpenApiParameter.HEADER, description="sent again, gives the job of the first time"
    ),
]


class _ScaleQuery(serializers.Serializer[None]):
    revision = serializers.IntegerField(min_value=1, max_value=2**31 - 1, required=False)


class Jobs(View, ListAPIView[Job]):
    parser_classes: tuple[type[BaseParser], ...] = (BoundedJSON, Manifest)  # type: ignore[assignment]
    serializer_class = JobSerializer
    pagination_class = Paging

    def get_queryset(self) -> QuerySet[Job]:
        user, asked = person(self.request), self.request.query_params
        of_deleted = asked.get("deleted") in {"1", "true"}
        jobs = selectors.deleted_for(user) if of_deleted else selectors.visible_to(user)
        if asked.get("mine") in {"1", "true"}:
            jobs = jobs.filter(owner=user)
        wanted = {field: asked.getlist(name) for name, field in _FILTERS.items() if asked.get(name)}
        return jobs.filter(**{field: all_ if field.endswith("__in") else all_[-1] for field, all_ in wanted.items()})

    @extend_schema(parameters=_PARAMETERS)
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:  # noqa: ANN401
        """The jobs that you may see, newest first."""
        return super().get(request, *args, **kwargs)

    @extend_schema(
        parameters=SUBMISSION,
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
        """Submit a job: a JobSpec document, or a manifest of Volcano, Kubeflow, Kubernetes or OpenPAI in YAML.

        200 for `dry_run`, and for a key that was sent before; 201 for a new job.
        """
        user = person(request)
        tenant = tenant_of(request)
        spec, warnings, values = _asked(request.data)
        if is_dry_run(request):
            services.check(spec=spec, tenant=tenant, user=user, secrets=values)
            return told(CheckedSerializer({"spec": spec.document(), "warnings": warnings}))
        now = clock.now()
        job = services.submit(spec=spec, tenant=tenant, user=user, now=now, key=key_of(request), secrets=values)
        status = 201 if job.submitted_at == now else 200
        return told(SubmittedSerializer({"job": job, "warnings": warnings}), status)


class OneJob(View):
    @extend_schema(responses=JobDetailSerializer)
    def get(self, request: Request, uid: UUID) -> Response:
        """One job: what was asked for, why it waits, its pods."""
        return told(JobDetailSerializer(selectors.get(uid, person(request))))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, uid: UUID) -> Response:
        """Let a finished job go, with all that is attached to it.

        Its logs and its history are kept for as long as its tenant says (`logs_until`, `history_until`).
        """
        user = person(request)
        services.delete(selectors.get(uid, user), user=user, now=clock.now())
        return Response(status=204)


class Actions(View):
    @extend_schema(request=ActionSerializer, responses=JobDetailSerializer)
    def post(self, request: Request, uid: UUID) -> Response:
        """Abort, resume, restart or end a job, or restart a part of it."""
        user = person(request)
        job, asked = selectors.get(uid, user), checked(ActionSerializer(data=request.data))
        action, part = Action(asked["action"]), {"task": asked["task"], "index": asked["index"]}
        return told(JobDetailSerializer(services.command(job, action, **part, user=user, now=clock.now())))


class Scale(View):
    @extend_schema(
        parameters=[
            OpenApiParameter("revision", int, description="refuse where the job changed since this revision of it")
        ],
        request={"application/json": OpenApiRequest(JOB_SIZE)},
        responses=ScaledSerializer,
    )
    def patch(self, request: Request, uid: UUID) -> Response:
        """Change how many replicas tasks have, and how few will do; what is left out stays as it is."""
        user = person(request)
        query = _ScaleQuery(data=request.query_params)
        query.is_valid(raise_exception=True)
        job, size = selectors.get(uid, user), Size.parse(cast("Mapping[str, Any]", request.data))
        seen = query.validated_data.get("revision")
        job = services.scale(job, size, user=user, now=clock.now(), seen=seen)
        return told(ScaledSerializer({"job": job, "warnings": services.scaling_remarks(job)}))


def _asked(body: Any) -> tuple[JobSpec, tuple[str, ...], Mapping[str, str]]:  # noqa: ANN401  (what a parser made of it)
    """The job, what in it has no effect, and its secrets; beside a JobSpec they stand in `secrets`."""
    if isinstance(body, ManifestText):
        loaded = formats.load(body["text"])
        return loaded.spec, loaded.warnings, loaded.secrets
    values = secrets.parse(body["secrets"]) if "secrets" in body else {}
    spec = JobSpec.parse({name: value for name, value in body.items() if name != "secrets"})
    return spec, spec.remarks, values
