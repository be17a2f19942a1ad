"""Endpoints of shared terminals and sessions: inviting people, one's own invitations, and open terminals."""

from typing import Any, ClassVar
from uuid import UUID

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.arrays import ArrayQuery, array
from hekla.api.documents import validated
from hekla.api.views import ApiView, person, respond
from hekla.apps.accounts.models import ApiToken
from hekla.apps.accounts.scopes import Scope
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs import services as job_services
from hekla.apps.sharing import selectors, services
from hekla.apps.sharing.models import Guest, GuestState, OpenTerminal
from hekla.apps.workbench import entry
from hekla.apps.workbench.models import SessionState
from hekla.domain.errors import NotFound, Refused
from hekla.domain.sharing import GuestRole
from hekla.lib import clock


class GuestRequestSerializer(serializers.Serializer[Any]):
    """Either a terminal or a session, a person, their role, and for how long."""

    rules: ClassVar[dict[str, Any]] = {
        "oneOf": [{"required": ["terminal"]}, {"required": ["session"]}],
    }

    terminal = serializers.UUIDField(required=False)
    session = serializers.UUIDField(required=False)
    person = serializers.CharField(max_length=150, help_text="user name")
    guest_role = serializers.ChoiceField(
        [role.value for role in GuestRole], help_text="owner: a co-owner. Sessions have no observers."
    )
    hours = serializers.IntegerField(min_value=1, max_value=services.MAX_HOURS, default=1)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """One of both."""
        if ("terminal" in attrs) == ("session" in attrs):
            raise serializers.ValidationError({"terminal": [_("Name either a terminal or a session.")]})
        return attrs


class GuestSerializer(serializers.Serializer[Guest]):
    uid = serializers.UUIDField()
    job = serializers.UUIDField(source="pod.job.uid")
    job_name = serializers.CharField(source="pod.job.name")
    task = serializers.CharField(source="pod.task")
    index = serializers.IntegerField(source="pod.index")
    tool = serializers.CharField(source="target.tool", help_text="terminal, or the tool of a session")
    target = serializers.UUIDField(source="target.uid", help_text="of the terminal or session")
    owner = serializers.CharField(source="target.owner.username")
    inviter = serializers.CharField(source="inviter.username")
    person = serializers.CharField(source="person.username")
    guest_role = serializers.ChoiceField([role.value for role in GuestRole], source="role")
    state = serializers.SerializerMethodField()
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()

    def get_state(self, guest: Guest) -> str:
        """`offered`, `accepted` or `ended`."""
        return guest.state(clock.now())


class OpenTerminalSerializer(serializers.Serializer[OpenTerminal]):
    uid = serializers.UUIDField()
    task = serializers.CharField(source="pod.task")
    index = serializers.IntegerField(source="pod.index")
    attempt = serializers.IntegerField(source="pod.attempt")
    owner = serializers.CharField(source="owner.username")
    opened_at = serializers.DateTimeField()


class GuestUrlSerializer(serializers.Serializer[Any]):
    url = serializers.URLField(help_text="of a session: works once, within half a minute; of a terminal: its page")
    notice = serializers.CharField(help_text="what the person must know before they open it; usually empty")


class JobTerminalsView(ApiView):
    queries = {"get": ArrayQuery}

    @extend_schema(responses=OpenTerminalSerializer(many=True))
    def get(self, request: Request, uid: UUID) -> Response:
        """The open terminals in pods of a job, the newest first."""
        job = jobs.get(uid, person(request))
        job_services.require_right(job, person(request))
        return array(request, selectors.terminals_of(job), OpenTerminalSerializer)


class JobGuestsView(ApiView):
    queries = {"get": ArrayQuery}
    writes = Scope.JOBS

    @extend_schema(responses=GuestSerializer(many=True))
    def get(self, request: Request, uid: UUID) -> Response:
        """The open invitations to terminals and sessions of a job."""
        job = jobs.get(uid, person(request))
        job_services.require_right(job, person(request))
        return array(request, selectors.guests_of_job(job, now=clock.now()), GuestSerializer)

    @extend_schema(request=GuestRequestSerializer, responses={201: GuestSerializer})
    def post(self, request: Request, uid: UUID) -> Response:
        """Invite a person to a terminal or session. It opens once they accept."""
        user, values = person(request), validated(GuestRequestSerializer(data=request.data))
        jobs.get(uid, user)
        target: selectors.Target
        if "terminal" in values:
            target = selectors.terminal(values["terminal"], user)
        else:
            target = selectors.session_of(values["session"], user)
        if target.pod.job.uid != uid:
            raise NotFound(_("Unknown terminal or session."))
        role, now = GuestRole(values["guest_role"]), clock.now()
        guest = services.invite(target, values["person"], role, hours=values["hours"], user=user, now=now)
        return respond(GuestSerializer(guest), 201)


class GuestsView(ApiView):
    queries = {"get": ArrayQuery}

    @extend_schema(responses=GuestSerializer(many=True))
    def get(self, request: Request) -> Response:
        """Your open invitations to terminals and sessions of other people, the newest first."""
        return array(request, selectors.invitations_of(person(request), now=clock.now()), GuestSerializer)


class GuestView(ApiView):
    writes = Scope.JOBS

    @extend_schema(responses=GuestSerializer)
    def get(self, request: Request, uid: UUID) -> Response:
        """An invitation that concerns you, also one that has ended."""
        return respond(GuestSerializer(selectors.guest(uid, person(request))))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, uid: UUID) -> Response:
        """Decline or leave your own invitation, or revoke that of another person."""
        guest, user = selectors.guest(uid, person(request)), person(request)
        end = services.decline if guest.person_id == user.pk else services.revoke
        end(guest, user=user, now=clock.now())
        return Response(status=204)


class GuestAcceptView(ApiView):
    writes = Scope.JOBS

    @extend_schema(request=None, responses=GuestSerializer)
    def post(self, request: Request, uid: UUID) -> Response:
        """Accept your own invitation."""
        guest = selectors.guest(uid, person(request))
        services.accept(guest, user=person(request), now=clock.now())
        return respond(GuestSerializer(guest))


class GuestUrlView(ApiView):
    writes = Scope.JOBS

    @extend_schema(request=None, responses=GuestUrlSerializer)
    def post(self, request: Request, uid: UUID) -> Response:
        """A URL that opens in your browser what you accepted. With a token, a session lasts as long as the token."""
        guest, user = selectors.guest(uid, person(request)), person(request)
        services.require_own(guest, user)
        if guest.state(clock.now()) is not GuestState.ACCEPTED:
            raise Refused(_("Accept the invitation first. One that has ended opens nothing."))
        if guest.session is None:
            return respond(GuestUrlSerializer({"url": request.build_absolute_uri(guest.page), "notice": ""}))
        guest.session.pod = guest.pod
        if guest.session.state is not SessionState.READY:
            raise Refused(_("The session is not ready, or has ended."))
        token = request.auth.pk if isinstance(request.auth, ApiToken) else None
        login = request._request.session.session_key if token is None else None
        ticket = entry.issue_ticket(guest.session, login=login, token=token, person=user.pk, guest=guest.pk)
        url, notice = (
            entry.entry_url(guest.session, ticket, request.get_host()),
            " ".join(entry.shared_host_notices(guest.session)),
        )
        return respond(GuestUrlSerializer({"url": url, "notice": notice}))
