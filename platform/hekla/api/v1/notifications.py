"""Endpoints of notifications about jobs, and of their settings."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.documents import validated
from hekla.api.queries import PageQuery
from hekla.api.views import ApiView, CursorPages, person, respond
from hekla.apps.accounts.models import User
from hekla.apps.jobs import selectors as jobs
from hekla.apps.notifications import labels, selectors, services
from hekla.apps.notifications.choices import MOMENT_LABELS, Channel
from hekla.apps.notifications.forms import MOST_MINUTES
from hekla.apps.notifications.models import Delivery, Notification
from hekla.lib import clock

_MOMENTS = [(str(moment), str(moment)) for moment in MOMENT_LABELS]
_CHANNELS = [(str(channel), str(channel)) for channel in Channel]
_NOTHING = "nothing"


class DeliverySerializer(serializers.ModelSerializer[Delivery]):
    class Meta:
        model = Delivery
        fields = ["channel", "attempts", "due_at", "sent_at", "abandoned_at", "error"]


class NotificationSerializer(serializers.ModelSerializer[Notification]):
    """A notification about an event of a job."""

    number = serializers.IntegerField(source="pk")
    moment = serializers.CharField()
    sentence = serializers.SerializerMethodField()
    facts = serializers.JSONField()
    deliveries = DeliverySerializer(many=True)

    class Meta:
        model = Notification
        fields = ["number", "at", "moment", "job_uid", "job_name", "sentence", "facts", "read_at", "deliveries"]

    def get_sentence(self, notification: Notification) -> str:
        """The event of the job, as a sentence."""
        return labels.sentence(notification)


class ChoiceSerializer(serializers.Serializer[Any]):
    """The events, the channels, and the minutes until a pending job counts as waiting long."""

    moments = serializers.MultipleChoiceField(choices=_MOMENTS)
    channels = serializers.MultipleChoiceField(choices=_CHANNELS)
    long_wait_minutes = serializers.IntegerField(min_value=1, max_value=MOST_MINUTES, required=False)


class ChoiceQuery(serializers.Serializer[Any]):
    notify = serializers.MultipleChoiceField(
        choices=[*_MOMENTS, (_NOTHING, _NOTHING)],
        required=False,
        help_text="events for this job, instead of your settings",
    )
    notify_by = serializers.MultipleChoiceField(
        choices=_CHANNELS, required=False, help_text="channels; default: your settings"
    )
    notify_after = serializers.IntegerField(
        min_value=1,
        max_value=MOST_MINUTES,
        required=False,
        help_text="minutes until a pending job counts as waiting long",
    )


def choice_of(user: User, query: Mapping[str, Any]) -> dict[str, Any] | None:
    """The notification settings in the query of a submission; None if there are none."""
    values = {name: query[name] for name in ("notify", "notify_by", "notify_after") if query.get(name)}
    if not values:
        return None
    usual = selectors.preference(user)
    return {
        "moments": sorted(set(values.get("notify", usual.moments)) - {_NOTHING}),
        "channels": sorted(values.get("notify_by", usual.channels)),
        "long_wait_minutes": values.get("notify_after", usual.long_wait_minutes),
    }


class PreferenceSerializer(ChoiceSerializer):
    """Settings for all your jobs, and your addresses. The secret of a new webhook is shown once."""

    mail = serializers.EmailField(allow_blank=True, required=False)
    is_digest = serializers.BooleanField(required=False)
    webhook_url = serializers.CharField(allow_blank=True, max_length=500, required=False)


class ChosenSerializer(PreferenceSerializer):
    secret = serializers.CharField(help_text="secret of a new webhook; shown once")


class _ReadSerializer(serializers.Serializer[Any]):
    up_to = serializers.IntegerField(min_value=0, max_value=2**62, help_text="number of the newest one that you saw")


class NotificationsQuery(PageQuery):
    unread = serializers.BooleanField(default=False, help_text="only unread notifications")


class _Pages(CursorPages):
    ordering = ("-id",)


class NotificationListView(ApiView, ListAPIView[Notification]):
    queries = {"get": NotificationsQuery}
    serializer_class = NotificationSerializer
    pagination_class = _Pages

    def get_queryset(self) -> QuerySet[Notification]:
        found = selectors.visible_to(person(self.request))
        return found.filter(read_at=None) if self.query["unread"] else found

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:  # noqa: ANN401
        """Your notifications, newest first."""
        return super().get(request, *args, **kwargs)

    @extend_schema(request=_ReadSerializer, responses={204: None})
    def post(self, request: Request) -> Response:
        """Mark notifications as read, up to a number."""
        values = validated(_ReadSerializer(data=request.data))
        services.mark_read(person(request), up_to=values["up_to"], now=clock.now())
        return Response(status=204)


class NotificationPreferencesView(ApiView):
    @extend_schema(responses=PreferenceSerializer)
    def get(self, request: Request) -> Response:
        """The settings for all your jobs."""
        return respond(PreferenceSerializer(selectors.preference(person(request))))

    @extend_schema(request=PreferenceSerializer, responses=ChosenSerializer)
    def put(self, request: Request) -> Response:
        """Change the settings. Omitted fields stay unchanged."""
        user = person(request)
        values = _listed(validated(PreferenceSerializer(data=request.data)))
        secret = services.choose(user, values, now=clock.now())
        return Response({**PreferenceSerializer(selectors.preference(user)).data, "secret": secret})


class JobNotificationsView(ApiView):
    @extend_schema(responses=ChoiceSerializer)
    def get(self, request: Request, uid: UUID) -> Response:
        """Your settings for this job. Without events there are no notifications."""
        user = person(request)
        job = jobs.get(uid, user)
        own = selectors.job_choice(user, job) or (selectors.preference(user) if job.owner_id == user.pk else None)
        return respond(ChoiceSerializer(own or {"moments": [], "channels": [], "long_wait_minutes": 30}))

    @extend_schema(request=ChoiceSerializer, responses=ChoiceSerializer)
    def put(self, request: Request, uid: UUID) -> Response:
        """Change the settings for this job only."""
        user = person(request)
        job, values = jobs.get(uid, user), validated(ChoiceSerializer(data=request.data))
        return respond(ChoiceSerializer(services.choose_for_job(user, job, _listed(values))))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, uid: UUID) -> Response:
        """Use your default settings for this job."""
        user = person(request)
        services.forget_choice(user, jobs.get(uid, user))
        return Response(status=204)


def _listed(values: dict[str, Any]) -> dict[str, Any]:
    """The values with sets as sorted lists, because JSON has no sets."""
    return {name: sorted(value) if isinstance(value, (set, frozenset)) else value for name, value in values.items()}
