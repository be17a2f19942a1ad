"""Endpoints of the recordings of shared terminals."""

from typing import Any
from uuid import UUID

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.arrays import ArrayQuery, array
from hekla.api.documents import validated
from hekla.api.renderers import ApiRenderer
from hekla.api.v1.files import FileRenderer
from hekla.api.views import ApiView, person, respond
from hekla.apps.accounts.scopes import Scope
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs import services as job_services
from hekla.apps.sharing import files, selectors, services
from hekla.apps.sharing.models import Recording
from hekla.apps.streaming import FileResponse
from hekla.lib import clock

_LONGEST = 365 * 24 * 3600.0


class RecordingSerializer(serializers.Serializer[Recording]):
    uid = serializers.UUIDField()
    task = serializers.CharField(source="pod.task")
    index = serializers.IntegerField(source="pod.index")
    attempt = serializers.IntegerField(source="pod.attempt")
    owner = serializers.CharField(source="owner.username", help_text="who opened the terminal")
    people = serializers.ListField(child=serializers.CharField(), help_text="user names of those who were there")
    columns = serializers.IntegerField(help_text="at the begin")
    rows = serializers.IntegerField(help_text="at the begin")
    started_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)
    seconds = serializers.FloatField(help_text="0 while it goes on")
    size = serializers.IntegerField(help_text="in bytes; 0 while it goes on")
    is_full = serializers.BooleanField(help_text="it reached the most bytes of a recording")
    part_of = serializers.UUIDField(
        source="source.uid", default=None, allow_null=True, help_text="the recording that it was cut from"
    )


class CutRequestSerializer(serializers.Serializer[Any]):
    """A part of a recording, in seconds after its begin."""

    begin = serializers.FloatField(min_value=0, max_value=_LONGEST)
    end = serializers.FloatField(min_value=0, max_value=_LONGEST)


class JobRecordingsView(ApiView):
    queries = {"get": ArrayQuery}

    @extend_schema(responses=RecordingSerializer(many=True))
    def get(self, request: Request, uid: UUID) -> Response:
        """The recordings of a job's shared terminals, the newest first."""
        job = jobs.get(uid, person(request))
        job_services.require_right(job, person(request))
        return array(request, selectors.recordings_of(job), RecordingSerializer)


class RecordingView(ApiView):
    writes = Scope.JOBS

    @extend_schema(responses=RecordingSerializer)
    def get(self, request: Request, uid: UUID) -> Response:
        """One recording."""
        return respond(RecordingSerializer(_find(request, uid)))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, uid: UUID) -> Response:
        """Delete a recording that has ended."""
        services.delete_recording(_find(request, uid), user=person(request), now=clock.now())
        return Response(status=204)


class RecordingCastView(ApiView):
    renderer_classes = (ApiRenderer, FileRenderer)

    @extend_schema(responses={(200, "application/octet-stream"): OpenApiTypes.BINARY})
    def get(self, request: Request, uid: UUID) -> StreamingHttpResponse:
        """The recording as asciicast v2."""
        found = _find(request, uid)
        size = files.size(found.uid)
        answer = FileResponse(files.read(found.uid, 0, size), f"{found.pod.job.name}-{found.pod}.cast")
        answer.headers["Content-Length"] = str(size)
        return answer


class RecordingCutsView(ApiView):
    writes = Scope.JOBS

    @extend_schema(request=CutRequestSerializer, responses={201: RecordingSerializer})
    def post(self, request: Request, uid: UUID) -> Response:
        """Save a part of a recording as a recording of its own."""
        values = validated(CutRequestSerializer(data=request.data))
        found, user = _find(request, uid), person(request)
        made = services.cut_recording(found, values["begin"], values["end"], user=user, now=clock.now())
        return respond(RecordingSerializer(made), 201)


def _find(request: Request, uid: UUID) -> Recording:
    """Raises NotFound, Forbidden."""
    found = selectors.recording(uid, person(request))
    job_services.require_right(found.pod.job, person(request))
    return found
