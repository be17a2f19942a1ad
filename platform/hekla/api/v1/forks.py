"""The endpoint that forks a job with the files of one pod."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.documents import validated
from hekla.api.v1.following import find_pod
from hekla.api.views import ApiView, person, respond
from hekla.apps.accounts.scopes import Scope
from hekla.apps.sharing import services
from hekla.apps.sharing.models import JobFork
from hekla.domain.tools import STARTED_TOOLS
from hekla.lib import clock


class ForkRequestSerializer(serializers.Serializer[Any]):
    """The pod whose files are copied, and the tool that opens then."""

    task = serializers.CharField(max_length=63)
    index = serializers.IntegerField(min_value=0, max_value=2**31 - 1, default=0)
    open_tool = serializers.ChoiceField([tool.value for tool in STARTED_TOOLS], required=False)
    only_files = serializers.BooleanField(
        default=False, help_text="one pod without cards that does not run the program of the job, for at most 8 hours"
    )


class ForkSerializer(serializers.Serializer[JobFork]):
    job = serializers.UUIDField(source="job.uid")
    name = serializers.CharField(source="job.name")
    state = serializers.CharField(help_text="of the copy of the files: waiting, copying, done or failed")


class JobForksView(ApiView):
    writes = Scope.JOBS

    @extend_schema(request=ForkRequestSerializer, responses={201: ForkSerializer})
    def post(self, request: Request, uid: UUID) -> Response:
        """Submit a job like this one. The files of a pod are copied once it runs."""
        values, user = validated(ForkRequestSerializer(data=request.data)), person(request)
        pod = find_pod(uid, user, values["task"], values["index"], None)
        tool, only_files = values.get("open_tool", ""), values["only_files"]
        made = services.fork(pod, tool=tool, only_files=only_files, user=user, now=clock.now())
        return respond(ForkSerializer(made), 201)
