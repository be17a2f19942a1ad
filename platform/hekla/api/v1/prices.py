"""Endpoints of price lists."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_view
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.v1.schema import PRICE_SPEC
from hekla.api.views import CursorPages, DeletableViewSet, person
from hekla.apps.accounts.scopes import Scope
from hekla.apps.prices import selectors, services
from hekla.apps.prices.models import PriceList
from hekla.domain.prices import PriceSpec
from hekla.lib import clock


@extend_schema_field(PRICE_SPEC)
class PriceSpecField(serializers.DictField):
    """The prices; `PriceSpec` says what is wrong with them."""


class NewPriceListSerializer(serializers.Serializer[Any]):
    """A new price list. `begin_at`: from when on it is valid, down to the hour."""

    begin_at = serializers.DateTimeField()
    spec = PriceSpecField()


class PriceListSerializer(serializers.ModelSerializer[PriceList]):
    """A price list. It is valid from `begin_at` until that of the next one."""

    class Meta:
        model = PriceList
        fields = ["uid", "name", "currency", "begin_at", "is_demonstration", "created_by", "created_at"]


class PriceListDetailSerializer(PriceListSerializer):
    """A price list with its prices. `end_at`: when the next one begins. `is_current`: whether it is valid now."""

    end_at = serializers.SerializerMethodField()
    is_current = serializers.SerializerMethodField()
    spec = serializers.SerializerMethodField()

    class Meta(PriceListSerializer.Meta):
        fields = [*PriceListSerializer.Meta.fields, "end_at", "is_current", "spec"]

    @extend_schema_field(serializers.DateTimeField(allow_null=True))
    def get_end_at(self, found: PriceList) -> Any:  # noqa: ANN401  (serialized data)
        return selectors.until(found)

    def get_is_current(self, found: PriceList) -> bool:
        return selectors.at(clock.now()) == found

    @extend_schema_field(PRICE_SPEC)
    def get_spec(self, found: PriceList) -> Any:  # noqa: ANN401  (serialized data)
        """The prices, with the factors of the queues that you can see."""
        return selectors.spec_for(found, person(self.context["request"])).document()


class _ByBegin(CursorPages):
    ordering = ("-begin_at", "-id")


@extend_schema_view(
    list=extend_schema(description="The price lists, newest first."),
    retrieve=extend_schema(description="One price list, with its prices."),
    destroy=extend_schema(description="Delete a price list that has not begun."),
)
class PriceListViewSet(DeletableViewSet[PriceList]):
    writes = Scope.MANAGE

    list_serializer_class = PriceListSerializer
    serializer_class = PriceListDetailSerializer
    pagination_class = _ByBegin

    def get_queryset(self) -> QuerySet[PriceList]:
        return selectors.visible_to(person(self.request))

    def get_object(self) -> PriceList:
        return selectors.get(self.kwargs["uid"], person(self.request))

    @extend_schema(request=NewPriceListSerializer, responses={201: PriceListDetailSerializer})
    def create(self, request: Request) -> Response:
        """Add a price list. Costs of the past do not change, so it begins in the future; the first list need not."""
        services.require_right(person(request))
        values = NewPriceListSerializer(data=request.data)
        values.is_valid(raise_exception=True)
        spec, begin_at = PriceSpec.parse(values.validated_data["spec"]), values.validated_data["begin_at"]
        made = services.create(spec=spec, begin_at=begin_at, user=person(request), now=clock.now())
        return self.respond(made, 201)

    def perform_destroy(self, found: PriceList) -> None:
        services.delete(found, user=person(self.request), now=clock.now())
