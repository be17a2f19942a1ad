"""Priority classes: look, make, change, delete."""

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.views import View, checked, person, told
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.scopes import Scope
from hekla.apps.accounts.services import actor_of, require
from hekla.apps.forms import RESERVED
from hekla.apps.priorities import selectors, services
from hekla.apps.priorities.models import PriorityClass
from hekla.apps.tenancy.models import Tenant
from hekla.lib import clock


class ToldClassSerializer(serializers.ModelSerializer[PriorityClass]):
    class Meta:
        model = PriorityClass
        fields = ["name", "value", "description", "is_default", "never_preempts", "is_offered"]


class PriorityClassSerializer(serializers.ModelSerializer[PriorityClass]):
    """`tenants`: who may use it, by short name; none: everybody. They replace those that there are."""

    tenants = serializers.SlugRelatedField(slug_field="slug", queryset=Tenant.objects.all(), many=True, required=False)

    class Meta:
        model = PriorityClass
        fields = ["value", "description", "is_default", "never_preempts", "is_offered", "tenants"]


class NewPriorityClassSerializer(PriorityClassSerializer):
    name = serializers.SlugField(max_length=63)

    class Meta(PriorityClassSerializer.Meta):
        fields = ["name", *PriorityClassSerializer.Meta.fields]

    def validate_name(self, name: str) -> str:
        """A name that addresses do not use otherwise."""
        if name in RESERVED:
            raise serializers.ValidationError(_("“%s” means something else in addresses; choose another name.") % name)
        return name


class PriorityClasses(View):
    writes = Scope.MANAGE

    @extend_schema(responses=ToldClassSerializer(many=True))
    def get(self, request: Request) -> Response:
        """The classes that your jobs may name, the highest first; all of them for who sees everything."""
        return told(ToldClassSerializer(selectors.visible_to(person(request)), many=True))

    @extend_schema(request=NewPriorityClassSerializer, responses={201: NewPriorityClassSerializer})
    def post(self, request: Request) -> Response:
        """Make a priority class (admins of the platform)."""
        user = person(request)
        require(user, Permission.MANAGE_PRIORITY_CLASSES)
        wish = checked(NewPriorityClassSerializer(data=request.data))
        name, tenants = wish.pop("name"), wish.pop("tenants", ())
        made = services.create(name=name, values=wish, tenants=tenants, actor=actor_of(user), now=clock.now())
        return told(NewPriorityClassSerializer(made), 201)


class OnePriorityClass(View):
    writes = Scope.MANAGE

    @extend_schema(responses=ToldClassSerializer)
    def get(self, request: Request, name: str) -> Response:
        """One priority class."""
        return told(ToldClassSerializer(selectors.get(name, person(request))))

    @extend_schema(request=PriorityClassSerializer, responses=NewPriorityClassSerializer)
    def patch(self, request: Request, name: str) -> Response:
        """Change it for jobs to come; those that were submitted keep their priority (admins of the platform)."""
        user = person(request)
        require(user, Permission.MANAGE_PRIORITY_CLASSES)
        wish = checked(PriorityClassSerializer(data=request.data, partial=True))
        tenants = wish.pop("tenants", None)
        services.change(selectors.get(name, user), wish, tenants=tenants, actor=actor_of(user), now=clock.now())
        return told(NewPriorityClassSerializer(selectors.get(name, user)))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """Delete it; jobs that were submitted with it keep their priority (admins of the platform)."""
        user = person(request)
        require(user, Permission.MANAGE_PRIORITY_CLASSES)
        services.delete(selectors.get(name, user), actor=actor_of(user), now=clock.now())
        return Response(status=204)
