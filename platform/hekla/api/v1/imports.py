"""Endpoint to import people from a CSV table."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiRequest, extend_schema
from rest_framework import serializers
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.documents import validated
from hekla.api.parsers import BoundedJSONParser, TableBytes, TableParser
from hekla.api.v1.parameters import DryRunQuery
from hekla.api.views import ApiView, person, respond
from hekla.apps.accounts.scopes import Scope
from hekla.apps.invitations import importing, table
from hekla.apps.invitations.issuing import issue
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy import services as tenancy_services
from hekla.apps.tenancy.models import Tenant
from hekla.lib import clock


class ImportQuery(DryRunQuery):
    tenant = serializers.CharField(
        required=False, max_length=200, help_text="short name; tenant of rows without a tenant"
    )


class TableSerializer(serializers.Serializer[Any]):
    text = serializers.CharField(trim_whitespace=False, help_text="CSV; its first line names the columns")


class WrongCellSerializer(serializers.Serializer[Any]):
    path = serializers.CharField()
    message = serializers.CharField()


class ImportedSerializer(serializers.Serializer[Any]):
    """A row and its result. The link is shown once. `sent`: it is mailed too, within minutes."""

    line = serializers.IntegerField(source="outcome.row.line")
    row = serializers.DictField(source="outcome.row.cells", child=serializers.CharField())
    outcome = serializers.ChoiceField([str(what) for what in importing.RowOutcome], source="outcome.what")
    note = serializers.CharField(source="outcome.note")
    problems = WrongCellSerializer(source="outcome.problems", many=True)
    link = serializers.CharField()
    sent = serializers.BooleanField()


class PeopleImportView(ApiView):
    queries = {"post": ImportQuery}
    writes = Scope.ADMIN
    parser_classes: tuple[type[BaseParser], ...] = (BoundedJSONParser, TableParser)  # type: ignore[assignment]

    @extend_schema(
        request={
            "application/json": OpenApiRequest(TableSerializer),
            "text/csv": OpenApiRequest(OpenApiTypes.STR),
        },
        responses=ImportedSerializer(many=True),
    )
    def post(self, request: Request) -> Response:
        """Import people from a table: people with an account become members, others are invited. Importing the same
        table again changes nothing (tenant admins and platform admins).
        """
        user = person(request)
        into = _into(request)
        tenancy_services.require_some(user)
        rows = table.read(_text(request)).rows
        act = importing.preview if self.query["dry_run"] else importing.import_rows
        outcomes = act(rows, into=into, by=user, now=clock.now())
        return respond(ImportedSerializer(issue(outcomes, request.build_absolute_uri), many=True))


def _into(request: Request) -> Tenant | None:
    slug = request.query_params.get("tenant", "")
    return tenancy.get(slug, person(request)) if slug else None


def _text(request: Request) -> str:
    if isinstance(request.data, TableBytes):
        return table.decoded(request.data["text"])
    text: str = validated(TableSerializer(data=request.data))["text"]
    return text
