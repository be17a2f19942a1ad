"""Secrets as YAML text: one name and value per line, or a block for a value of several lines."""

from collections.abc import Mapping

from django.utils.translation import gettext as _

from hekla.domain import secrets, yaml_text
from hekla.domain.errors import Invalid, Problem


def read(text: str) -> dict[str, str]:
    """The secrets by name. Raises Invalid; its message contains no secret."""
    form = Invalid([Problem("secrets", _("Enter one “name: value” per line."))])
    try:
        documents = yaml_text.read(text)
    except Invalid as error:
        raise form from error
    if len(documents) > 1:
        raise Invalid([Problem("secrets", _("Expected one list of secrets."))])
    if documents and not isinstance(documents[0], Mapping):
        raise form
    return secrets.parse(documents[0] if documents else {})


def write(values: Mapping[str, str]) -> str:
    """The secrets as YAML text."""
    return yaml_text.write([dict(values)]) if values else ""


def joined(typed: str, more: Mapping[str, str]) -> str:
    """The typed secrets combined with these. The typed value wins if both have the same name."""
    if not more:
        return typed
    try:
        return write({**more, **read(typed)})
    except Invalid:
        return f"{typed}\n{write(more)}"  # the typed text is not valid: keep it all, so that the person can correct it
