"""Query parameters, described once: for the OpenAPI document and for the validation of requests."""

from functools import cache
from typing import Any

from django.http import QueryDict
from django.utils.translation import gettext as _
from rest_framework.exceptions import ValidationError
from rest_framework.serializers import CharField, IntegerField, ListField, MultipleChoiceField, Serializer

MAX_PAGE = 200


class NoQuery(Serializer[Any]):
    """No query parameters."""


class PageQuery(Serializer[Any]):
    """The position in a list."""

    limit = IntegerField(min_value=1, max_value=MAX_PAGE, default=50, help_text="maximum number of results")
    cursor = CharField(max_length=1000, required=False, help_text="position, from `next` or `previous`")


def parsed_query(described: type[Serializer[Any]], query: QueryDict) -> dict[str, Any]:
    """The validated query parameters. Raises ValidationError for malformed, repeated and unknown ones.

    A misspelt `dry_run` would change what the client only wanted to check.
    """
    if not query:
        return defaults(described)
    fields, problems, values = described().fields, dict[str, list[str]](), dict[str, Any]()
    for name, found in query.lists():
        is_list = isinstance(fields.get(name), ListField | MultipleChoiceField)
        values[name] = found if is_list else found[-1]
        if name not in fields:
            problems[name] = [_("Unknown parameter.")]
        elif len(found) > 1 and not is_list:
            problems[name] = [_("Give this parameter once.")]
    if problems:
        raise ValidationError(problems)
    return checked(described(data=values))


def defaults(described: type[Serializer[Any]]) -> dict[str, Any]:
    """The query parameters of a request without any. Raises ValidationError if some are required."""
    return dict(_defaults(described))


def own_parameters(described: type[Serializer[Any]], query: QueryDict) -> dict[str, Any]:
    """Those of the query parameters that are described, validated. Raises ValidationError for malformed ones."""
    fields = described().fields if query else ()
    own = {name: value for name, value in query.items() if name in fields}
    return checked(described(data=own)) if own else defaults(described)


@cache
def _defaults(described: type[Serializer[Any]]) -> dict[str, Any]:
    """Cached, since most requests have none, and a serializer copies its fields for each."""
    return checked(described(data={}))


def checked(serializer: Serializer[Any]) -> dict[str, Any]:
    """The validated data. Raises ValidationError."""
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)
