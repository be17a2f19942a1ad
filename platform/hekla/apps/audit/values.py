"""Values of events in the reader's language, if they are terms of Hekla."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from django.utils.translation import gettext as _

from hekla.apps.accounts.roles import PLATFORM_ROLE_LABELS, TENANT_ROLE_LABELS
from hekla.apps.event_log.phases import phase
from hekla.apps.sharing import roles
from hekla.domain import events
from hekla.domain.events import Vocabulary

MAX_TEXT = 120
"""The characters of one value in a sentence; the event has all of it."""
_INSTANT = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)[\d:.]*Z")


def _role(labels: Mapping[Any, Any]) -> Callable[[str], str]:
    return lambda value: str(labels.get(value, value))


_LABELS: Mapping[Vocabulary, Callable[[str], str]] = {
    Vocabulary.PHASE: phase,
    Vocabulary.TENANT_ROLE: _role(TENANT_ROLE_LABELS),
    Vocabulary.PLATFORM_ROLE: _role(PLATFORM_ROLE_LABELS),
    Vocabulary.GUEST_ROLE: _role(roles.LABELS),
}


def describe_value(kind: str, field: str, value: Any) -> str:  # noqa: ANN401  (any value in an event)
    """A value of a field of an event, in words."""
    word = events.vocabulary_of(kind, field) if isinstance(value, str) else None
    return _LABELS[word](value) if word else describe(value)


def describe(value: Any) -> str:  # noqa: ANN401  (any value in an event)
    """A value in words, shortened; empty for None and for empty values."""
    return _shortened(_words(value))


def describe_role(value: Any) -> str:  # noqa: ANN401  (any value in an event)
    """A platform role, in words."""
    return _LABELS[Vocabulary.PLATFORM_ROLE](value) if value else ""


def _words(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, str):
        instant = _INSTANT.fullmatch(value)
        return f"{instant[1]} {instant[2]} UTC" if instant else value
    if value is None:
        return ""
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, Mapping):
        return _(", ").join(f"{name}={_words(one)}" for name, one in value.items())
    if isinstance(value, list):
        return _(", ").join(_words(one) for one in value)
    return str(value)


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return f"{text[: MAX_TEXT - 1]}…" if len(text) > MAX_TEXT else text
