"""Endpoints of failed pods that stay: what stays, and the job that continues there."""

from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.arrays import ArrayQuery, array
from hekla.api.documents import validated
from hekla.api.v1.serializers import JobDetailSerializer
from hekla.api.views import ApiView, person, respond
from hekla.apps.accounts.models import User
from hekla.apps.accounts.scopes import Scope
from hekla.apps.jobs import selectors, services
from hekla.apps.jobs.models import FrozenPod
from hekla.domain.errors import NotFound
from hekla.domain.jobspec import MAX_KEEP_SECONDS
from hekla.lib import clock


class FrozenPodSerializer(serializers.ModelSerializer[FrozenPod]):
    """A failed pod whose files and environment stay."""

    task = serializers.CharField(source="pod.task")
    index = serializers.IntegerField(source="pod.index")
    attempt = serializers.IntegerField(source="pod.attempt")
    size = serializers.IntegerField(allow_null=True, help_text="of its files in bytes; null: not measured yet")
    debug_job = serializers.UUIDField(
        source="debug_job.uid", allow_null=True, help_text="the last job that continues there, or did"
    )
    released_at = serializers.DateTimeField(allow_null=True, help_text="since then, nobody can continue there")

    class Meta:
        model = FrozenPod
        fields = ["task", "index", "attempt", "until", "size", "debug_job", "released_at"]


class ReplicaSerializer(serializers.Serializer[Any]):
    """A replica of a job."""

    task = serializers.CharField(max_length=63)
    index = serializers.IntegerField(min_value=0, max_value=2**31 - 1, default=0)


class KeepSerializer(serializers.Serializer[Any]):
    """How long the files stay from now; at most until seven days after the end of the pod."""

    seconds = serializers.IntegerField(min_value=1, max_value=MAX_KEEP_SECONDS)


class FrozenPodListView(ApiView):
    queries = {"get": ArrayQuery}
    writes = Scope.JOBS

    @extend_schema(responses=FrozenPodSerializer(many=True))
    def get(self, request: Request, uid: UUID) -> Response:
        """The failed pods of a job that stay, or stayed."""
        return array(request, selectors.frozen_pods(selectors.get(uid, person(request))), FrozenPodSerializer)

    @extend_schema(request=ReplicaSerializer, responses={200: JobDetailSerializer, 201: JobDetailSerializer})
    def post(self, request: Request, uid: UUID) -> Response:
        """Continue where a pod failed: submit a job with its files and environment, for terminals and tools.

        201 for a new job; 200 if one continues there already.
        """
        user = person(request)
        services.require_right(selectors.get(uid, user), user)
        values = validated(ReplicaSerializer(data=request.data))
        frozen = _find(uid, user, values["task"], values["index"])
        job, is_new = services.open_frozen(frozen.pod_id, user=user, now=clock.now())
        return respond(JobDetailSerializer(selectors.get(job.uid, user)), 201 if is_new else 200)


class FrozenPodView(ApiView):
    writes = Scope.JOBS

    @extend_schema(request=KeepSerializer, responses=FrozenPodSerializer)
    def patch(self, request: Request, uid: UUID, task: str, index: int) -> Response:
        """Let the files of a failed pod stay longer."""
        user, values = person(request), validated(KeepSerializer(data=request.data))
        frozen = _find(uid, user, task, index)
        frozen = services.keep_frozen(frozen.pod_id, values["seconds"], user=user, now=clock.now())
        return respond(FrozenPodSerializer(frozen))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, uid: UUID, task: str, index: int) -> Response:
        """Delete the files of a failed pod now. Its log stays."""
        user = person(request)
        services.release_frozen(_find(uid, user, task, index).pod_id, user=user, now=clock.now())
        return Response(status=204)


def _find(uid: UUID, user: User, task: str, index: int) -> FrozenPod:
    """The last attempt of this replica that stays. Raises NotFound."""
    for frozen in reversed(selectors.frozen_pods(selectors.get(uid, user))):
        if (frozen.pod.task, frozen.pod.index, frozen.released_at) == (task, index, None):
            return frozen
    raise NotFound(_("The files of this pod are not kept, or no longer."))
