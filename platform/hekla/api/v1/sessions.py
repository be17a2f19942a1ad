"""Endpoints of sessions: ports and tools of running pods in the browser."""

from typing import Any, ClassVar
from uuid import UUID

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.arrays import ArrayQuery, array
from hekla.api.documents import validated
from hekla.api.v1.following import find_pod
from hekla.api.views import ApiView, person, respond
from hekla.apps.accounts.models import ApiToken
from hekla.apps.accounts.scopes import Scope
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs import services as job_services
from hekla.apps.sharing import presence
from hekla.apps.sharing.presence import SessionPresence
from hekla.apps.workbench import entry, selectors, services
from hekla.apps.workbench.models import SessionState, ToolSession
from hekla.domain.errors import Forbidden, NotFound, Refused
from hekla.domain.tools import Tool
from hekla.lib import clock
from hekla.workbench import tools


class SessionRequestSerializer(serializers.Serializer[Any]):
    """A port of a pod, or a tool that starts in it."""

    rules: ClassVar[dict[str, Any]] = {
        "oneOf": [
            {"properties": {"tool": {"const": "port"}}, "required": ["port"]},
            {"properties": {"tool": {"not": {"const": "port"}}}, "not": {"required": ["port"]}},
        ]
    }

    task = serializers.CharField(max_length=63)
    index = serializers.IntegerField(min_value=0, max_value=2**31 - 1, default=0)
    tool = serializers.ChoiceField([tool.value for tool in Tool])
    port = serializers.IntegerField(min_value=1, max_value=services.LAST_PORT, required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """A port belongs to the tool `port` only."""
        if (attrs["tool"] == Tool.PORT) != ("port" in attrs):
            raise serializers.ValidationError({"port": [_("Name a port for the tool “port”, and for no other.")]})
        return attrs


class SessionSerializer(serializers.Serializer[ToolSession]):
    uid = serializers.UUIDField()
    task = serializers.CharField(source="pod.task")
    index = serializers.IntegerField(source="pod.index")
    attempt = serializers.IntegerField(source="pod.attempt")
    tool = serializers.ChoiceField([tool.value for tool in Tool])
    port = serializers.IntegerField(help_text="in the pod; 0: not known yet")
    owner = serializers.CharField(source="owner.username")
    state = serializers.CharField(help_text="starting, ready or ended")
    message = serializers.CharField(help_text="why a tool ended by itself, or its last lines; usually empty")
    created_at = serializers.DateTimeField()


class SessionPresenceSerializer(serializers.Serializer[SessionPresence]):
    username = serializers.CharField(source="person.username")
    is_here = serializers.BooleanField(help_text="has a request or websocket open now")
    used_at = serializers.DateTimeField()


class SessionUrlSerializer(serializers.Serializer[Any]):
    """For the browser of the person who opened the session."""

    url = serializers.URLField(help_text="works once, within half a minute")
    notice = serializers.CharField(help_text="what the person must know before they open it; usually empty")


class JobSessionsView(ApiView):
    queries = {"get": ArrayQuery}
    writes = Scope.JOBS

    @extend_schema(responses=SessionSerializer(many=True))
    def get(self, request: Request, uid: UUID) -> Response:
        """The open sessions with pods of a job, the newest first."""
        job = jobs.get(uid, person(request))
        job_services.require_right(job, person(request))
        return array(request, selectors.of_job(job), SessionSerializer)

    @extend_schema(request=SessionRequestSerializer, responses={200: SessionSerializer, 201: SessionSerializer})
    def post(self, request: Request, uid: UUID) -> Response:
        """Open a session with a running pod. A tool starts in the pod; ask until it is ready, then for the URL.

        201 for a new session; 200 if you have it open already.
        """
        user, values = person(request), validated(SessionRequestSerializer(data=request.data))
        pod = find_pod(uid, user, values["task"], values["index"], None)
        tool, now = Tool(values["tool"]), clock.now()
        session, is_new = services.open_session(pod.pk, tool, values.get("port", 0), user=user, now=now)
        if is_new and tool is not Tool.PORT:
            tools.start(session, now=now)
        return respond(SessionSerializer(session), 201 if is_new else 200)


class JobSessionView(ApiView):
    writes = Scope.JOBS

    @extend_schema(responses=SessionSerializer)
    def get(self, request: Request, uid: UUID, session: UUID) -> Response:
        """A session, also one that has ended."""
        found = find_session(request, uid, session)
        tools.look(found, now=clock.now())
        return respond(SessionSerializer(found))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, uid: UUID, session: UUID) -> Response:
        """End a session, and the tool that was started for it."""
        found = find_session(request, uid, session)
        tools.stop(found)
        services.end_session(found, user=person(request), now=clock.now())
        return Response(status=204)


class JobSessionUrlView(ApiView):
    writes = Scope.JOBS

    @extend_schema(request=None, responses=SessionUrlSerializer)
    def post(self, request: Request, uid: UUID, session: UUID) -> Response:
        """A URL that opens your session in a browser. With a token, the session lasts as long as the token."""
        found = find_session(request, uid, session)
        if found.owner_id != person(request).pk:
            raise Forbidden(_("Only the person who opened a session can enter it. Open one of your own."))
        if found.state is not SessionState.READY:
            raise Refused(_("The session is not ready, or has ended."))
        token = request.auth.pk if isinstance(request.auth, ApiToken) else None
        login = request._request.session.session_key if token is None else None
        ticket = entry.issue_ticket(found, login=login, token=token)
        url, notice = entry.entry_url(found, ticket, request.get_host()), " ".join(entry.shared_host_notices(found))
        return respond(SessionUrlSerializer({"url": url, "notice": notice}))


class SessionPeopleView(ApiView):
    queries = {"get": ArrayQuery}

    @extend_schema(responses=SessionPresenceSerializer(many=True))
    def get(self, request: Request, uid: UUID, session: UUID) -> Response:
        """Who has a session open now, and who used it in the last minutes."""
        found = presence.users_of(find_session(request, uid, session), now=clock.now())
        return array(request, found, SessionPresenceSerializer)


def find_session(request: Request, uid: UUID, session: UUID) -> ToolSession:
    """A session with a pod of this job. Raises NotFound, Forbidden."""
    found = selectors.get(session, person(request))
    if found.pod.job.uid != uid:
        raise NotFound(_("Unknown session."))
    job_services.require_right(found.pod.job, person(request))
    return found
