"""Values of events in the reader's language, if they are terms of Hekla."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from hekla.apps.accounts.roles import PLATFORM_ROLE_LABELS, TENANT_ROLE_LABELS
from hekla.apps.event_log.phases import phase
from hekla.domain import events
from hekla.domain.events import Vocabulary

_INSTANT = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)[\d:.]*Z")


def _role(labels: Mapping[Any, Any]) -> Callable[[str], str]:
    return lambda value: str(labels.get(value, value))


_LABELS: Mapping[Vocabulary, Callable[[str], str]] = {
    Vocabulary.PHASE: phase,
    Vocabulary.TENANT_ROLE: _role(TENANT_ROLE_LABELS),
    Vocabulary.PLATFORM_ROLE: _role(PLATFORM_ROLE_LABELS),
}


def describe_value(kind: str, field: str, value: Any) -> str:  # noqa: ANN401  (any value in an event)
    """A value of an event, in words."""
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return ", ".join(value)
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if instant := _INSTANT.fullmatch(value):
        return f"{instant[1]} {instant[2]} UTC"
    word = events.vocabulary_of(kind, field)
    return _LABELS[word](value) if word else value
