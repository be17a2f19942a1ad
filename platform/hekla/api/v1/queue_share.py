"""Endpoint of why a queue deserves what it deserves."""

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.views import ApiView, person
from hekla.apps.queues import selectors
from hekla.domain.errors import NotFound
from hekla.domain.resources import format_quantity
from hekla.simulation import share_derivation
from hekla.simulation.share_derivation import DivisionRow, RoundRow, ShareExplanation


class QueueShareQuery(serializers.Serializer[Any]):
    resource = serializers.CharField(
        required=False, default="", allow_blank=True, max_length=253, help_text="default: the first kind of GPUs"
    )


class DividedQueueSerializer(serializers.Serializer[Any]):
    """A queue and one resource, as Kubernetes quantities; or several queues that you cannot see, with an empty name."""

    name = serializers.CharField()
    count = serializers.IntegerField(help_text="how many queues these are")
    weight = serializers.IntegerField()
    setting = serializers.CharField(help_text="what its settings say that it deserves")
    guarantee = serializers.CharField()
    limit = serializers.CharField(allow_null=True, help_text="null: no limit")
    request = serializers.CharField(help_text="what pods of its jobs hold or request")
    allocated = serializers.CharField()
    deserved = serializers.CharField()


class DividingRoundSerializer(serializers.Serializer[Any]):
    """One round in which the queue took part. `offered`: what it had before, and its part by weight."""

    number = serializers.IntegerField()
    left = serializers.CharField(help_text="in the cluster at its start")
    weight = serializers.IntegerField()
    weights = serializers.FloatField(help_text="of all queues that took part")
    offered = serializers.CharField()
    deserved = serializers.CharField()


class QueueShareExplanationSerializer(serializers.Serializer[Any]):
    queue = serializers.CharField()
    resource = serializers.CharField()
    resources = serializers.ListField(child=serializers.CharField(), help_text="all that can be explained")
    plugin = serializers.CharField(help_text="the plugin that divides the cluster; empty if none does")
    total = serializers.CharField()
    guaranteed = serializers.CharField(help_text="to all queues")
    deserved = serializers.CharField()
    parents = serializers.ListField(child=serializers.CharField())
    sentences = serializers.ListField(child=serializers.CharField())
    rounds = DividingRoundSerializer(many=True)
    queues = DividedQueueSerializer(many=True)


class QueueShareView(ApiView):
    queries = {"get": QueueShareQuery}

    @extend_schema(responses=QueueShareExplanationSerializer)
    def get(self, request: Request, name: str) -> Response:
        """How the scheduler computes what the queue deserves of one resource, with the queues beside it."""
        user = person(request)
        found = share_derivation.explain_share(user, selectors.get(name, user), self.query["resource"])
        if found is None:
            skipped = _(
                "The scheduler skips this queue: its settings are contradictory, or the cluster's policy fails."
            )
            raise NotFound(skipped)
        return Response(_document(found))


def _document(found: ShareExplanation) -> dict[str, Any]:
    def quantity(amount: float | None) -> str | None:
        return None if amount is None else format_quantity(found.resource, amount)

    def row(one: DivisionRow) -> dict[str, Any]:
        amounts = ("setting", "guarantee", "limit", "request", "allocated", "deserved")
        facts = {"name": one.name, "count": one.count, "weight": one.weight}
        return facts | {name: quantity(getattr(one, name)) for name in amounts}

    def of_round(one: RoundRow) -> dict[str, Any]:
        facts = {"number": one.number, "weight": one.weight, "weights": one.weights}
        return facts | {name: quantity(getattr(one, name)) for name in ("left", "offered", "deserved")}

    return {
        "queue": found.queue,
        "resource": found.resource,
        "resources": list(found.resources),
        "plugin": found.plugin,
        "total": quantity(found.total),
        "guaranteed": quantity(found.guaranteed),
        "deserved": quantity(found.deserved),
        "parents": list(found.parents),
        "sentences": list(found.sentences),
        "rounds": [of_round(one) for one in found.rounds],
        "queues": [row(one) for one in found.rows],
    }
