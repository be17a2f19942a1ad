"""Placeholders in commands, for example `<% $parameters.batch %>`, and the values of the JobConfig for them.

Secrets stay as placeholders; `domain.secrets` fills them when the pod starts.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from hekla.domain import secrets
from hekla.domain.formats.fields import Fields, Findings
from hekla.domain.translation import gettext_noop, translate
from hekla.domain.validation import quote

MAX_LENGTH = 64 * 1024
MASK = "******"
"""Replaces all secrets in a JobConfig that is read back."""

_PLACE = re.compile(r"<%\s*([^%<>]{1,300}?)\s*%>")
_INDEX = re.compile(r"\[(\d{1,4})\]")
_SECRETS = "$secrets."
_UNKNOWN = gettext_noop("{place}: the JobConfig has no value for it, so it stays unchanged.")


class PlaceholderValues:
    """The values by the first part of placeholders, for example `$parameters`. Placeholders without a value are
    reported.
    """

    def __init__(self, values: Mapping[str, Any], findings: Findings) -> None:
        self._values, self._findings = values, findings

    def fill(self, text: str, path: str) -> str:
        """The text with the known values. A result longer than MAX_LENGTH is a problem."""
        pieces, grown, at = [], 0, 0
        for match in _PLACE.finditer(text):
            piece = text[at : match.start()] + self._value(match, path)
            pieces.append(piece)
            grown, at = grown + len(piece), match.end()
            if grown > MAX_LENGTH:
                self._findings.problem(
                    path, translate("With its values this exceeds {kib} KiB.", kib=MAX_LENGTH // 1024)
                )
                return ""
        return "".join([*pieces, text[at:]])

    def _value(self, match: re.Match[str], path: str) -> str:
        name = _INDEX.sub(r".\1", match[1])
        if name.startswith(_SECRETS):
            return secrets.placeholder(name.removeprefix(_SECRETS))
        value = look_up(self._values, name)
        if value is None or isinstance(value, dict | list):
            self._findings.not_honoured(path, translate(_UNKNOWN, place=quote(match[0])))
            return match[0]
        return as_word(value)


def names_in(text: str) -> Iterator[str]:
    """The dotted names in the placeholders of a text."""
    return (_INDEX.sub(r".\1", match[1]) for match in _PLACE.finditer(text))


def look_up(values: Any, name: str) -> Any:  # noqa: ANN401  (JSON-like data)
    """The value at a dotted name; None if there is none."""
    for part in name.split("."):
        if isinstance(values, Mapping):
            values = values.get(part)
        elif isinstance(values, list) and part.isdigit() and int(part) < len(values):
            values = values[int(part)]
        else:
            return None
    return values


def as_word(value: object) -> str:
    """A value as a word of a command."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def read_secrets(job: Fields) -> dict[str, str]:
    """The values of `secrets` by their dotted names. Problems never contain a value, not even an invalid one."""
    found: dict[str, str] = {}
    secrets_field, path = job.take("secrets"), job.at("secrets")
    if secrets_field == MASK:
        return {}
    if secrets_field is not None and not isinstance(secrets_field, Mapping):
        job.findings.problem(path, translate("Must be a mapping of names to values."))
        return {}
    _flatten(secrets_field or {}, "", found)
    if wrong := secrets.problem(found):
        job.findings.problem(path, wrong)
        return {}
    return found


def _flatten(values: Any, before: str, found: dict[str, str]) -> None:  # noqa: ANN401  (JSON-like data)
    items = values.items() if isinstance(values, Mapping) else enumerate(values)
    for name, value in items:
        path = f"{before}.{name}" if before else str(name)
        if isinstance(value, Mapping | list):
            _flatten(value, path, found)
        elif value is not None:
            found[path] = as_word(value)
