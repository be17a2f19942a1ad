"""Endpoints of departments: their tenants, their heads, and their resource usage."""

from typing import Any

from django.contrib.auth import get_user_model
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.arrays import ArrayQuery, array
from hekla.api.documents import refuse_reserved, validated
from hekla.api.views import ApiView, person, respond
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.scopes import Scope
from hekla.apps.accounts.services import actor_of, require
from hekla.apps.tenancy import departments, selectors
from hekla.apps.tenancy.models import Department, Tenant
from hekla.apps.usage import holdings
from hekla.domain.resources import format_quantity
from hekla.lib import clock


class DepartmentSerializer(serializers.ModelSerializer[Department]):
    class Meta:
        model = Department
        fields = ["slug", "name", "description"]


class TenantUseSerializer(serializers.Serializer[Any]):
    """`held`: requests of its running pods, as Kubernetes quantities, without simulated nodes."""

    slug = serializers.CharField()
    running = serializers.IntegerField()
    waiting = serializers.IntegerField()
    held = serializers.DictField(child=serializers.CharField())


class DepartmentDetailSerializer(serializers.Serializer[Any]):
    slug = serializers.CharField()
    name = serializers.CharField()
    description = serializers.CharField()
    heads = serializers.ListField(child=serializers.CharField())
    tenants = TenantUseSerializer(many=True)
    together = TenantUseSerializer()


class DepartmentChangeSerializer(serializers.Serializer[Any]):
    """`heads`: all user names. `tenants`: all short names."""

    name = serializers.CharField(max_length=120)
    description = serializers.CharField(max_length=2000, required=False, allow_blank=True)
    heads = serializers.SlugRelatedField(
        slug_field="username", queryset=get_user_model().objects.filter(is_active=True), many=True, required=False
    )
    tenants = serializers.SlugRelatedField(slug_field="slug", queryset=Tenant.objects.all(), many=True, required=False)


class NewDepartmentSerializer(DepartmentChangeSerializer):
    slug = serializers.SlugField(max_length=40, validators=[refuse_reserved])


class DepartmentListView(ApiView):
    queries = {"get": ArrayQuery}
    writes = Scope.MANAGE

    @extend_schema(responses=DepartmentSerializer(many=True))
    def get(self, request: Request) -> Response:
        """The departments that you head. People who can see everything get all departments."""
        return array(request, selectors.departments_of(person(request)), DepartmentSerializer)

    @extend_schema(request=NewDepartmentSerializer, responses={201: DepartmentDetailSerializer})
    def post(self, request: Request) -> Response:
        """Create a department (platform admins)."""
        user = person(request)
        require(user, Permission.MANAGE_TENANTS)
        values = validated(NewDepartmentSerializer(data=request.data))
        made = departments.create(**values, actor=actor_of(user), now=clock.now())
        return respond(_detail(made), 201)


class DepartmentView(ApiView):
    writes = Scope.MANAGE

    @extend_schema(responses=DepartmentDetailSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """A department, its tenants, and the resources that they use, each and in total."""
        return respond(_detail(selectors.department(slug, person(request))))

    @extend_schema(request=DepartmentChangeSerializer, responses=DepartmentDetailSerializer)
    def patch(self, request: Request, slug: str) -> Response:
        """Change a department. `heads` and `tenants` replace the present ones (platform admins)."""
        user = person(request)
        department = selectors.department(slug, user)
        require(user, Permission.MANAGE_TENANTS)
        values = validated(DepartmentChangeSerializer(data=request.data, partial=True))
        sets = {name: values.pop(name, None) for name in ("heads", "tenants")}
        departments.change(department, values, **sets, actor=actor_of(user), now=clock.now())
        return respond(_detail(selectors.department(slug, user)))


def _detail(department: Department) -> DepartmentDetailSerializer:
    tenants = list(selectors.tenants_in(department))
    held = holdings.by_tenant([tenant.pk for tenant in tenants])
    return DepartmentDetailSerializer(
        {
            "slug": department.slug,
            "name": department.name,
            "description": department.description,
            "heads": [user.username for user in selectors.heads(department)],
            "tenants": [_use(tenant.slug, held[tenant.pk]) for tenant in tenants],
            "together": _use("", sum(held.values(), holdings.Holding())),
        }
    )


def _use(slug: str, holding: holdings.Holding) -> dict[str, Any]:
    held = {name: format_quantity(name, amount) for name, amount in holding.held.items()}
    return {"slug": slug, "running": holding.running, "waiting": holding.waiting, "held": held}
