"""Endpoints for many jobs: one action on all of them, and counts by group."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from uuid import UUID

from django.http import QueryDict
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.documents import validated
from hekla.api.v1.jobs import FILTERS, filtered_jobs
from hekla.api.views import ApiView, person, respond
from hekla.apps.accounts.scopes import Scope
from hekla.apps.jobs import filters, groups, services
from hekla.apps.jobs.models import Job
from hekla.domain.errors import Invalid, Problem
from hekla.domain.job_kinds import MAX_PRIORITY
from hekla.lib import clock

_NARROWING = [parameter for parameter in FILTERS if parameter.name != "deleted"]


class BulkSerializer(serializers.Serializer[Any]):
    """`uids`: some of the jobs that the filters select. Without it: all of them. An empty list is rejected."""

    rules: ClassVar[dict[str, Any]] = {
        "anyOf": [
            {"properties": {"action": {"not": {"const": "SetPriority"}}}},
            {"properties": {"priority": {"type": "integer"}}, "required": ["priority"]},
        ]
    }
    action = serializers.ChoiceField(choices=services.BULK_ACTIONS)
    uids = serializers.ListField(
        child=serializers.UUIDField(), min_length=1, max_length=services.MOST_AT_ONCE, required=False
    )
    priority = serializers.IntegerField(
        min_value=-MAX_PRIORITY, max_value=MAX_PRIORITY, default=None, allow_null=True, help_text="for SetPriority"
    )
    dry_run = serializers.BooleanField(default=False, help_text="list the selected jobs, change nothing")


class OutcomeSerializer(serializers.Serializer[Any]):
    uid = serializers.UUIDField()
    name = serializers.CharField()
    tenant = serializers.CharField()
    phase = serializers.CharField(help_text="before the action")
    done = serializers.BooleanField(allow_null=True, help_text="null for `dry_run`")
    why = serializers.CharField(help_text="reason of the failure")


class OutcomesSerializer(serializers.Serializer[Any]):
    """The result of each job. `left`: the filters select more jobs. Repeat the request for the others."""

    outcomes = OutcomeSerializer(many=True)
    left = serializers.BooleanField()


class GroupSerializer(serializers.Serializer[Any]):
    """A group of jobs: all, unfinished and failed ones."""

    name = serializers.CharField()
    jobs = serializers.IntegerField()
    alive = serializers.IntegerField()
    failed = serializers.IntegerField()


class GroupsSerializer(serializers.Serializer[Any]):
    by = serializers.CharField()
    groups = GroupSerializer(many=True)


class BulkActionView(ApiView):
    queries = {"post": None}
    writes = Scope.JOBS

    @extend_schema(parameters=_NARROWING, request=BulkSerializer, responses=OutcomesSerializer)
    def post(self, request: Request) -> Response:
        """Apply one action to many jobs, at most 1,000, with a result for each.

        Select the jobs by uids, by the filters of the list in the address, or by both. Requests without uids and
        filters, or with filters that are unknown, empty, malformed or without effect, are rejected.
        """
        values = validated(BulkSerializer(data=request.data))
        services.require_priority(values["action"], values["priority"])
        uids = values.get("uids", [])
        found, left = _meant(request, uids)
        if values["dry_run"]:
            outcomes = [_outcome(job, done=None) for job in found]
        else:
            act = {name: values[name] for name in ("action", "priority")}
            done = services.act_on_all(found, **act, user=person(request), now=clock.now())
            outcomes = [_outcome(each.job, done=each.is_done, why=each.why) for each in done]
        missing = [_missing(uid) for uid in sorted(set(uids) - {job.uid for job in found})]
        return respond(OutcomesSerializer({"outcomes": [*outcomes, *missing], "left": left}))


class JobGroupsView(ApiView):
    queries = {"get": None}

    @extend_schema(
        parameters=[OpenApiParameter("by", str, required=True, enum=[*groups.LABELS]), *FILTERS],
        responses=GroupsSerializer,
    )
    def get(self, request: Request) -> Response:
        """Number of jobs by group, the hundred largest groups, with the filters of the list."""
        by = request.query_params.get("by", "")
        if by not in groups.LABELS:
            sentence = _("Count jobs by one of: %(names)s.") % {"names": ", ".join(groups.LABELS)}
            raise Invalid([Problem("by", sentence)])
        counted = groups.of(filtered_jobs(request, "by"), by, QueryDict())
        return respond(GroupsSerializer({"by": by, "groups": counted}))


def _meant(request: Request, uids: Sequence[UUID]) -> tuple[list[Job], bool]:
    """The selected jobs, at most `MOST_AT_ONCE`, and whether the filters match more. Raises Invalid."""
    query, most = request.query_params, services.MOST_AT_ONCE
    _require_narrow(query, is_named=bool(uids))
    found = filters.order(query).of(filtered_jobs(request))
    jobs = list((found.filter(uid__in=uids) if uids else found)[: most + 1])
    return jobs[:most], len(jobs) > most


def _require_narrow(query: Mapping[str, Any], *, is_named: bool) -> None:
    """Raises Invalid for the filter `deleted`, and if nothing selects jobs. `filtered_jobs` checks the filters."""
    if "deleted" in query:
        raise Invalid([Problem("deleted", _("Unknown filter."))])
    if not is_named and not set(query) - {"sort"}:
        raise Invalid([Problem("uids", _("Select jobs by their uids, or by filters in the address."))])


def _outcome(job: Job, *, done: bool | None, why: str = "") -> dict[str, Any]:
    return {"uid": job.uid, "name": job.name, "tenant": job.tenant.slug, "phase": job.phase, "done": done, "why": why}


def _missing(uid: UUID) -> dict[str, Any]:
    return {"uid": uid, "name": "", "tenant": "", "phase": "", "done": False, "why": _("Unknown job.")}
