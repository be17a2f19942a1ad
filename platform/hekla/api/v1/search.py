"""Endpoint of the search by name."""

from typing import Any

from django.utils.translation import get_language
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.arrays import ArrayQuery, array
from hekla.api.throttles import PerPersonThrottle, SearchThrottle
from hekla.api.views import ApiView, person
from hekla.apps.search import registry, selectors
from hekla.apps.search.registry import Hit


class SearchHitSerializer(serializers.Serializer[Any]):
    """A search result."""

    kind = serializers.ChoiceField(choices=[source.kind for source in registry.sources()])
    kind_name = serializers.SerializerMethodField(help_text="plural name of the kind, in your language")
    icon = serializers.SerializerMethodField()
    name = serializers.CharField()
    note = serializers.CharField(help_text="distinguishes results of the same name")
    path = serializers.CharField(help_text="path of its page in this console")

    def get_kind_name(self, hit: Hit) -> str:
        return str(registry.get(hit.kind).label)

    def get_icon(self, hit: Hit) -> str:
        return registry.get(hit.kind).icon


class SearchQuery(ArrayQuery):
    q = serializers.CharField(max_length=200, help_text="two letters or more")
    kind = serializers.ChoiceField(
        choices=[source.kind for source in registry.sources()], required=False, help_text="only this kind"
    )


class SearchView(ApiView):
    queries = {"get": SearchQuery}
    throttle_classes = (PerPersonThrottle, SearchThrottle)

    @extend_schema(responses=SearchHitSerializer(many=True))
    def get(self, request: Request) -> Response:
        """Search by name, a few results of each kind: jobs, queues, nodes, tenants, people, help, …"""
        hits = selectors.find(person(request), self.query["q"], get_language() or "en", self.query.get("kind", ""))
        return array(request, hits, SearchHitSerializer)
