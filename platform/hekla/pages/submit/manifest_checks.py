"""What the editor of manifests shows beside a text: every problem with its line, and the fields that may be there."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from django.utils.translation import gettext as _

from hekla.domain import formats
from hekla.domain.errors import HeklaError, Invalid, Problem, Refused
from hekla.domain.formats import LoadedFlow, LoadedJob
from hekla.domain.formats.inspection import values

Loaded = TypeVar("Loaded", LoadedJob, LoadedFlow)
_PLACE = re.compile(r"[\w.\[\]/-]+")
_INDEX = re.compile(r"\[\d+\]")
_MOST_PROBLEMS = 50
_LINE = re.compile(r"\W*\w+ ?\d+")  # the message of the YAML parser has the line itself


def check(
    text: str,
    found: formats.Inspection[Loaded],
    judge: Callable[[Loaded], Sequence[Problem]],
    offered: Mapping[str, Sequence[str]],
) -> dict[str, Any]:
    """The problems of a text, its fields by path with `[]` for any item of a list, and the values of fields.

    An empty text has no problem yet. `judge`: what would be refused of a valid job or flow, by paths in its spec;
    `offered`: values by the name of a field.
    """
    problems = _problems(found, judge) if text.strip() else []
    return {"problems": problems, "fields": _by_place(found.fields), "values": {**values(), **offered}}


def _by_place(fields: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The fields of any item of a list, since each has those of every other, and a list can have many."""
    places: dict[str, dict[str, None]] = {}
    for path, names in fields.items():
        places.setdefault(_INDEX.sub("[]", path), {}).update(dict.fromkeys(names))
    return {place: [*names] for place, names in places.items()}


def _problems(found: formats.Inspection[Loaded], judge: Callable[[Loaded], Sequence[Problem]]) -> list[dict[str, Any]]:
    first, others = found.problems[:_MOST_PROBLEMS], found.problems[_MOST_PROBLEMS:]
    problems = [_entry(found.line_of(one.path), one.path, one.message) for one in first]
    if others:
        more = _("… and %(count)d more problems.") % {"count": len(others)}
        problems.append(_entry(found.line_of(others[0].path), "", more))
    if found.loaded is not None:
        problems += [_entry(found.line_of_part(one.path), "", one.message) for one in _judged(found.loaded, judge)]
        problems += [_warning(found, sentence) for sentence in found.loaded.warnings]
    return problems


def _judged(loaded: Loaded, judge: Callable[[Loaded], Sequence[Problem]]) -> Sequence[Problem]:
    try:
        return judge(loaded)
    except Invalid as error:
        return error.problems
    except HeklaError as error:
        return [Problem(error.path if isinstance(error, Refused) else "", error.message)]


def _warning(found: formats.Inspection[Any], sentence: str) -> dict[str, Any]:
    match = _PLACE.match(sentence)
    return _entry(found.line_of(match[0] if match else ""), "", sentence) | {"severity": "warning"}


def _entry(line: int, path: str, message: str) -> dict[str, Any]:
    is_placed = not path and _LINE.match(message)
    words = message if is_placed else _("Line %(line)d: %(message)s") % {"line": line, "message": message}
    return {"line": line, "message": message, "words": words, "severity": "error"}
