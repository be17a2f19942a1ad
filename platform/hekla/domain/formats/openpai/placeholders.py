"""`<% $parameters.batch %>`: what a command leaves open, and what else the JobConfig says to fill it.

Secrets stay as they are written; `domain.secrets` fills them where the pod is started.
"""

import re
from collections.abc import Mapping
from typing import Any

from hekla.domain import secrets
from hekla.domain.formats.fields import Fields, Findings
from hekla.domain.translation import gettext_noop, translate
from hekla.domain.validation import quote

MAX_LENGTH = 64 * 1024
MASK = "******"
"""What stands for all secrets in a JobConfig that was asked for again."""

_PLACE = re.compile(r"<%\s*([^%<>]{1,300}?)\s*%>")
_INDEX = re.compile(r"\[(\d{1,4})\]")
_SECRETS = "$secrets."
_UNKNOWN = gettext_noop("{place}: the JobConfig has no value for it, so it stays unchanged.")


class PlaceholderValues:
    """The values by the names with which placeholders begin, such as `$parameters`. What fills nothing is reported."""

    def __init__(self, values: Mapping[str, Any], findings: Findings) -> None:
        self._values, self._findings = values, findings

    def fill(self, text: str, path: str) -> str:
        """The text with its values, as far as they are known. One that grows without bounds is a problem."""
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


def look_up(values: Any, name: str) -> Any:  # noqa: ANN401  (JSON-like data)
    """What stands at a dotted name; None where nothing does."""
    for part in name.split("."):
        if isinstance(values, Mapping):
            values = values.get(part)
        elif isinstance(values, list) and part.isdigit() and int(part) < len(values):
            values = values[int(part)]
        else:
            return None
    return values


def as_word(value: object) -> str:
    """A value as a command has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def read_secrets(job: Fields) -> dict[str, str]:
    """The values of `secrets` by their dotted names. No value is ever repeated, not even one that is wrong."""
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
