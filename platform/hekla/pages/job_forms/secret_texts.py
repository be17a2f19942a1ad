"""Secrets as people type them: YAML, a name and its value a line, or a value of several lines as a block."""

from collections.abc import Mapping

from django.utils.translation import gettext as _

from hekla.domain import secrets
from hekla.domain.errors import Invalid, Problem
from hekla.domain.formats import yaml_text


def read(text: str) -> dict[str, str]:
    """Names and values. Raises Invalid, which repeats none of them."""
    try:
        documents = yaml_text.read(text)
    except Invalid as error:
        raise Invalid([Problem("secrets", _("Enter one “name: value” per line."))]) from error
    if len(documents) > 1:
        raise Invalid([Problem("secrets", _("Expected one list of secrets."))])
    return secrets.parse(documents[0] if documents else {})


def write(values: Mapping[str, str]) -> str:
    """As they would be typed."""
    return yaml_text.write([dict(values)]) if values else ""


def joined(typed: str, more: Mapping[str, str]) -> str:
    """What was typed, and these beside it; of one that both name, what was typed holds."""
    if not more:
        return typed
    try:
        return write({**more, **read(typed)})
    except Invalid:
        return f"{typed}\n{write(more)}"  # nobody can tell what it names: all stands there, to be put right
