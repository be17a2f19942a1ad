"""The endpoint of a tenant's files: their limit, their use, and the jobs with the most."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.documents import validated
from hekla.api.views import ApiView, person, respond
from hekla.apps.accounts.models import User
from hekla.apps.accounts.scopes import Scope
from hekla.apps.accounts.services import actor_of
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy import services
from hekla.apps.tenancy.models import MAX_FILES_GIB, Tenant
from hekla.apps.usage import selectors as usage
from hekla.lib import clock

_MOST_FOLDERS = 100


class JobFolderSerializer(serializers.Serializer[Any]):
    """The room that the files of a job take."""

    uid = serializers.UUIDField(source="job.uid")
    name = serializers.CharField(source="job.name")
    owner = serializers.CharField(source="job.owner.username")
    phase = serializers.CharField(source="job.phase")
    size_bytes = serializers.IntegerField(source="size")
    files = serializers.IntegerField()
    complete = serializers.BooleanField(source="is_complete", help_text="false if there are more than were counted")
    measured_at = serializers.DateTimeField()


class TenantFilesSerializer(serializers.Serializer[Any]):
    """The files of a tenant's jobs, as far as they were measured, and the largest folders first."""

    limit_gib = serializers.IntegerField(allow_null=True)
    size_bytes = serializers.IntegerField()
    complete = serializers.BooleanField(help_text="false if there are more than were counted")
    jobs = JobFolderSerializer(many=True, help_text="at most 100")


class FileLimitSerializer(serializers.Serializer[Any]):
    """A limit to set. null: no limit."""

    limit_gib = serializers.IntegerField(min_value=0, max_value=MAX_FILES_GIB, allow_null=True)


class TenantFilesView(ApiView):
    writes = Scope.MANAGE

    @extend_schema(responses=TenantFilesSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """How much room the files of the tenant's jobs take, and those of its largest jobs."""
        return _answer(tenancy.get(slug, person(request)))

    @extend_schema(request=FileLimitSerializer, responses=TenantFilesSerializer)
    def put(self, request: Request, slug: str) -> Response:
        """Set from how many GiB on nobody can upload more (operators and platform admins)."""
        user: User = person(request)
        tenant, values = tenancy.get(slug, user), validated(FileLimitSerializer(data=request.data))
        services.set_file_limit(tenant, values["limit_gib"], actor=actor_of(user), now=clock.now())
        return _answer(tenancy.get(slug, user))


def _answer(tenant: Tenant) -> Response:
    found = usage.files_of(tenant)
    facts = {"limit_gib": tenant.files_gib, "size_bytes": found.size, "complete": found.is_complete}
    return respond(TenantFilesSerializer({**facts, "jobs": usage.largest_folders(tenant, _MOST_FOLDERS)}))
